"""HTTP: one path for every request, from the bytes of a query to the bytes of an answer."""
