"""Tasks that change stored visits: merging, judging, erasure, retention, reclassification."""
