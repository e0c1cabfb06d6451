"""Classifies requests by tables of rules, each row of which has its evidence."""
