"""The manifest: which files count, which logs were read, and whose they are."""
