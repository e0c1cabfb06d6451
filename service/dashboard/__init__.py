"""The pages with numbers and their panels, shared pages, reports, and CSV files."""
