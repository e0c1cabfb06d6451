"""Assembles a server from the operations, pages and parts of the rooms below."""
