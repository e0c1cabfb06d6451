"""Commands that pages print, in the form in which they run in a shell on the server."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final

from service.core.settings import setting

_ROOT: Final = Path(__file__).parents[2]
_PROGRAM: Final = ("uv", "run", "traffic") if (_ROOT / "pyproject.toml").exists() else ("traffic",)
"""In a clone, uv runs it; installed, it has its name."""


def command_line(lake: Path, *words: object) -> str:
    """Return a command of the program as a line for a shell, with the lake if that is not the default."""
    is_default = lake.absolute() == Path(setting("lake").default).absolute()
    return shlex.join([*_PROGRAM, *map(str, words), *([] if is_default else ["--lake", str(lake.absolute())])])


def runnable(command: Callable[..., str], text: str) -> str:
    """Return a command of the program in the form that `command` writes, and any other text unchanged."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote without its pair
        return text
    return command(*words[1:]) if words[:1] == ["traffic"] and "--lake" not in words and words[1:] != [] else text
