"""Parses requests from logs in many formats, from growing files, and from visits that programs report."""
