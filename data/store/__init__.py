"""The lake: its folders, how files are landed and rewritten, and its status."""
