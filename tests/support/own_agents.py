"""A lake's own table of agents, for tests."""

MONITOR = {
    "token": "Intranet-Monitor/", "agent": "Intranet Monitor", "operator": "Acme", "agent_kind": "monitor",
    "confidence": "high", "example": "Intranet-Monitor/2.1 (python)",
}  # fmt: skip
USER_AGENT = MONITOR["example"]


def table_of(*rows):
    """Return a TOML table of agents, as bytes, with these rows; each row maps fields to values."""
    return "\n".join(
        "\n".join(["[[agent]]", *(f"{name} = {toml_of(value)}" for name, value in row.items())]) for row in rows
    ).encode()


def change_rules(lake, number):
    """Write a table with one agent into a lake, with this number in its operator's name. This gives the rules another
    version, but changes no other agent.
    """
    lake.own_agents.write_bytes(table_of({**MONITOR, "operator": f"Operator {number}"}))


def toml_of(value):
    if isinstance(value, list):
        return f"[{', '.join(map(toml_of, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()
