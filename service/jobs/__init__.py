"""Jobs: proposed actions, the decisions about them, their implementations, and their measured effect."""
