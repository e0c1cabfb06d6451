"""Publishes the live visits of a lake: copies of their files, and beside them a Delta log that other engines read."""
