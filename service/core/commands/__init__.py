"""Flags, formats of answers and printing that several commands share."""
