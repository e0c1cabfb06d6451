"""Outgoing requests: HTTP and mail to servers that may be slow or hostile, with deadlines and size limits."""
