"""Publishes the live visits of a lake: copies of their files, with a Delta log that other engines can read."""
