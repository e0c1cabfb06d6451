"""Pages of numbers: panels of reports, shared pages, downloads."""
