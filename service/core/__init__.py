"""Shared parts of the service: settings, its database, requests, page layout, command line."""
