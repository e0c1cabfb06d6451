"""Exclusions from counts: files, and visits of the owner."""
