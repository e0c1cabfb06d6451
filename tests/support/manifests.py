"""The database of a manifest, which only its room asks in SQL, for tests that look into it or damage it."""


def database_of(manifest):
    """The database of an open manifest, with `rows` and `transaction`."""
    return manifest._database
