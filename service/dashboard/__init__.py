"""Pages with numbers: panels of reports, shared pages, downloads."""
