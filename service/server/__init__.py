"""The HTTP server: connection limits, connection slots, start and shutdown."""
