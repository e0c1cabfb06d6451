"""Visits and links that come in: posted, imported or followed."""
