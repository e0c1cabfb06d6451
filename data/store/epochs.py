"""How often what had landed of an organization was changed: cached answers of earlier epochs are out of date."""

import sqlite3


def begin_epoch(db: sqlite3.Connection, organization: str) -> None:
    """Put all answers of an organization out of date. The caller has begun a transaction."""
    db.execute(
        "INSERT INTO epochs VALUES (?, 1) ON CONFLICT (organization) DO UPDATE SET epoch = epoch + 1", [organization]
    )
