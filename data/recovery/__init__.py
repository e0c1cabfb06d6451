"""Backups, verification, and rebuilding a lost manifest."""
