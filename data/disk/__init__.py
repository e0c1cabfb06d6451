"""Writes and moves files durably on a local disk, and locks folders."""
