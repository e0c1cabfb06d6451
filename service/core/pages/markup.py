"""Markup from parts that are already escaped, and from text with code in it."""

from collections.abc import Callable

from markupsafe import Markup, escape

from service.core.program import change_code


def joined(*parts: Markup) -> Markup:
    """Join parts, each of which must be markup, as type checking ensures. This takes a fifth of the time of `%`."""
    return Markup("".join(parts))  # noqa: S704  # of markup only


def with_code(text: str, runnable: Callable[[str], str] = str) -> Markup:
    """Escape text; anything between two backticks becomes code, as rewritten by `runnable`."""
    before, *rest = escape(change_code(runnable, text)).split("`")
    pairs = zip(rest[::2], rest[1::2], strict=False)
    unpaired = Markup("`") + rest[-1] if len(rest) % 2 else Markup("")
    return joined(before, *(Markup("<code>%s</code>%s") % pair for pair in pairs), unpaired)
