"""Answers to the entries of the catalog: cached, or computed when it is the organization's turn."""
