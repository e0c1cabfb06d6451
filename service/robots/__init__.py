"""What keeping AI crawlers out would mean."""
