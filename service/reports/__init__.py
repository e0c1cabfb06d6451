"""Answers for the catalog's entries: cached, or computed when it is the organization's turn."""
