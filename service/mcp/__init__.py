"""Tools for coding agents and chat assistants, by the Model Context Protocol. Read only."""
