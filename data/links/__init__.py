"""Short links: their targets, import and export."""
