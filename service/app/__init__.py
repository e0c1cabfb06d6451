"""Puts a server together; the only room that knows all others."""
