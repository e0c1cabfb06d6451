"""Commands that print answers."""
