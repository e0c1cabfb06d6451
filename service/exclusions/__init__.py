"""Visits that answers leave out: requests for files, and the owner's visits."""
