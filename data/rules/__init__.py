"""Classifies requests by tables of rules, each with its evidence."""
