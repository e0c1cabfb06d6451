"""Objects in buckets, for logs that come from there and visits that are published there."""
