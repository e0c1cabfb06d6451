"""Read-only tools for coding agents and chat assistants, over the Model Context Protocol."""
