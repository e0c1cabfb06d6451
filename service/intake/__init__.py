"""Intake of visits and links: posted, imported or followed."""
