"""HTTP: the path that every request takes, from its bytes to the bytes of the response."""
