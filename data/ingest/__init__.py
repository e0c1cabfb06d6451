"""Requests become visits: whole logs, growing logs and live visits, on their way to the store."""
