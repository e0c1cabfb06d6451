"""Assembles a server; the only room that imports all others."""
