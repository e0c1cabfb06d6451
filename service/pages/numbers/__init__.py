"""The pages with numbers: which answers they show, and their tables, charts, CSV files, shares and reports."""
