"""Files on a local disk: written, moved and locked durably."""
