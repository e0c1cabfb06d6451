"""Backups, verification, and making a lost manifest anew."""
