"""Gives tests that read or damage a manifest its database; all other SQL on a manifest is in data/manifest."""


def database_of(manifest):
    """Return the database of an open manifest, with `rows` and `transaction`."""
    return manifest._database
