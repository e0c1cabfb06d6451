"""What is not counted: files, and visits of the owner."""
