"""Callers and how they are known: API keys, identity tokens, sign-in, sessions."""
