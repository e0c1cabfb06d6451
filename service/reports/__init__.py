"""Answers of the catalog: from the cache, or computed in the organization's turn."""
