"""Floor 2: HTTP and the command line."""
