"""Agent Hooks: signed messages about jobs, sent to the addresses that organizations register."""
