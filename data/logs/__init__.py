"""Parses requests from log files in many formats, and from visits that programs report."""
