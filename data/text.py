"""Text for people."""


def plural(count: int, noun: str) -> str:
    """A number and its noun: 1 visit, 2,000 visits."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
