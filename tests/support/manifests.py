"""Gives tests a manifest's database, to read or damage it; all other SQL on a manifest is in data/manifest."""


def database_of(manifest):
    """Return the database of an open manifest, with `rows` and `transaction`."""
    return manifest._database
