"""Shared parts of the service: settings, the control database, requests, page layout, the command line."""
