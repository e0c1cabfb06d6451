"""Commands for API keys and for signing in."""
