"""The lake: its folders, how files are landed and rewritten, and what it says of itself."""
