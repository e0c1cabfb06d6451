"""The database of a manifest, for tests that read or damage it; all other SQL on it is in its own room."""


def database_of(manifest):
    """The database of an open manifest, with `rows` and `transaction`."""
    return manifest._database
