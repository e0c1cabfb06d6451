"""The manifest: live files and imported logs by organization."""
