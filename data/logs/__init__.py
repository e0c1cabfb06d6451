"""Parses requests from logs of many formats, from growing files, and from visits that programs report."""
