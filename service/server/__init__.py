"""Sockets and processes: one connection's limits, and the server that holds them."""
