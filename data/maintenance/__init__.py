"""Maintenance of a lake: compaction, reclassification, erasure, retention, verification, status and backups."""
