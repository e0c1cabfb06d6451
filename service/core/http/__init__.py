"""HTTP: the path that every request takes, from the bytes of a query to the bytes of an answer."""
