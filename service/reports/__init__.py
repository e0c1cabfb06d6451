"""Answers of the catalog: from the cache, or computed when it is the turn of an organization."""
