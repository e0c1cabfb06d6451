"""Objects in buckets: sources of logs, and targets for published visits."""
