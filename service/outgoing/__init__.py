"""The one way out: HTTP and mail to servers that may be slow or hostile, before a deadline and within byte limits."""
