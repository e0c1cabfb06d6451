"""Flags, output formats and printing shared by several commands."""
