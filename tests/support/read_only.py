"""Runs `traffic` commands that cannot write into a folder: on a read-only mount, or without permission."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.commands import main
from tests.support.runs import Run

_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def run_read_only(folder: Path, *commands: tuple[str, ...]) -> list[Run]:
    """Run commands one after another in a process that cannot write into a folder. Skip the test if that is
    impossible.
    """
    words = [sys.executable, "-m", "tests.support.read_only", json.dumps(commands)]
    program = ["env", f"TMPDIR={folder.parent}", *words]
    mounts = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    mounted = [*mounts, "sh", "-c", _MOUNTED, str(folder)]
    if shutil.which("unshare") and subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode == 0:
        ran = subprocess.run([*mounted, *program], stdin=subprocess.DEVNULL, capture_output=True, check=True)
    elif os.geteuid() == 0:
        pytest.skip("unshare(1) cannot mount a folder read-only here, and root may write despite all permissions")
    else:
        with _without_rights(folder):
            ran = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, check=True)
    return [Run(*run) for run in json.loads(ran.stdout)]


@contextlib.contextmanager
def _without_rights(folder: Path) -> Iterator[None]:
    paths = [folder, *folder.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(modes[path] & ~0o222)
    yield
    for path in paths:
        path.chmod(modes[path])


def _run(arguments: list[str]) -> Run:
    bytes_out, err, code = io.BytesIO(), io.StringIO(), 0
    out = io.TextIOWrapper(bytes_out, "utf-8")
    sys.argv = ["traffic", *arguments]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    out.flush()
    return Run(code, bytes_out.getvalue().decode(), err.getvalue())


if __name__ == "__main__":
    print(json.dumps([_run(arguments) for arguments in json.loads(sys.argv[1])]))
