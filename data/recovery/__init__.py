"""Backups, verification, and the rebuilding of a lost manifest."""
