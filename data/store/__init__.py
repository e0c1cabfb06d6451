"""The lake: its folders, the landing and rewriting of its files, and its status."""
