"""Keeping a server and its lake well: maintenance, doctor, health."""
