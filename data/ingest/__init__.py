"""Builds visits from requests and hands them to the store: imports, followed logs and live visits."""
