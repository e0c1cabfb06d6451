"""Authentication of callers: API keys, identity tokens, sign-in, sessions."""
