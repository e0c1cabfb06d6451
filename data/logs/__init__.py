"""Bytes become requests: logs of many formats, files that grow, and visits that programs report."""
