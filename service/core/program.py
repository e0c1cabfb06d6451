"""Commands in pages and messages, written so that they run in a shell on the server."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from service.core.settings import setting

_ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = ("uv", "run", "traffic") if (_ROOT / "pyproject.toml").exists() else ("traffic",)
"""In a clone, uv runs the program; when installed, it runs by its name."""
DEFAULT_LAKE: Final = Path(setting("lake").default)
_WITHOUT_LAKE: Final = ("demo", "agents release", "formats explain")
"""The commands without a --lake flag."""


def command_line(lake: Path, *words: object) -> str:
    """Return a shell line for a command, with --lake unless the lake is the default or the command lacks the flag."""
    line = shlex.join([*_PROGRAM, *map(str, words)])
    is_default = lake.absolute() == DEFAULT_LAKE.absolute()
    has_lake = not is_default and not " ".join(map(str, words)).startswith(_WITHOUT_LAKE)
    return f"{line} {shlex.join(('--lake', str(lake.absolute())))}" if has_lake else line


def runnable(command: Callable[..., str], text: str) -> str:
    """Return a command of the program as `command` writes it; return other text and commands with --lake unchanged."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without its pair
        return text
    return command(*words[1:]) if words[:1] == ["traffic"] and "--lake" not in words and words[1:] != [] else text


def change_code(change: Callable[[str], str], text: str) -> str:
    """Return a text of the same type as `text`, with `change` applied to each part between two backticks."""
    parts = [change(part) if number % 2 else part for number, part in enumerate(text.split("`"))]
    return type(text)("`").join(parts)
