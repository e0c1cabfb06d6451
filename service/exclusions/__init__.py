"""What answers leave out: files, and the owner's own visits."""
