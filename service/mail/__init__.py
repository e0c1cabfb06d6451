"""Weekly reports by mail."""
