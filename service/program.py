"""The entry point of `traffic`. It hides installed packages that libraries would import needlessly."""

import gc
import io
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

UNUSED: Final = ("numpy", "pandas", "yaml")
"""pyarrow imports the first two if they are installed, for conversions that no command uses; this takes a second or
two. ua-parser imports YAML for rule files, which this program does not have."""


class _NotInstalled:
    """A finder that reports the packages in UNUSED as not installed, unless PySpark needs them."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        del path, target
        if name in UNUSED and "pyspark" not in sys.modules:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


def _open_missing_streams() -> None:
    """Open the standard streams that the caller closed; otherwise, files of the lake would get their descriptors.

    A write to a closed stdout fails (EBADF), so that no answer is lost silently; messages to a closed stderr are
    dropped.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            handle = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if handle != number:
                os.dup2(handle, number)
                os.close(handle)
            stream = io.FileIO(number, "r" if name == "stdin" else "w", closefd=False)
            setattr(sys, name, io.TextIOWrapper(stream, "utf-8", write_through=True))  # nothing is left to flush


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print only the message of a warning, without the source line that raised it."""
    sys.stderr.write(f"{message}\n")


def main() -> None:
    """Run one command; see service/commands.py."""
    _open_missing_streams()
    warnings.showwarning = _print_warning
    sys.meta_path.insert(0, _NotInstalled)
    gc.disable()  # imports create no garbage, but enough objects to trigger many collections
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # now Ctrl-C ends the process at once: nothing is open yet
    from service.commands import main as run  # noqa: PLC0415  # it imports pyarrow

    signal.signal(signal.SIGINT, interrupted)
    gc.freeze()  # imported objects stay, so that later collections, also at exit, skip them
    gc.enable()
    run()
