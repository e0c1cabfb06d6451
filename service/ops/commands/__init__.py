"""Commands that look after a lake."""
