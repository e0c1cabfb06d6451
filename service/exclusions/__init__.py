"""What counts exclude: files, and the owner's own visits."""
