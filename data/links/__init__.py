"""Short links: where they lead, their import and export."""
