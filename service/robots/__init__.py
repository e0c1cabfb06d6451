"""The effects of blocking AI crawlers."""
