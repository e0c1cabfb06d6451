"""`python -m queries.compiler` writes queries/spark/."""

import logging
from pathlib import Path
from typing import Final

from queries.compiler.statements import compiled_files

OUTPUT: Final = Path(__file__).parent.parent / "spark"


def main() -> None:
    """Write every compiled file, and remove those whose origin is gone."""
    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns of CREATE TYPE, which is not compiled
    files = {OUTPUT / f"{name}.sql": text for name, text in compiled_files()}
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for path in set(OUTPUT.rglob("*.sql")) - files.keys():
        path.unlink()


if __name__ == "__main__":
    main()
