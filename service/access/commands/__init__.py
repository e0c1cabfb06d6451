"""The commands of keys and sign-in."""
