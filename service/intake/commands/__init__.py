"""Commands that bring in visits and links."""
