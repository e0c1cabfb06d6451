"""Docker's daemon with its own folder and socket, so that no image or container of this computer is touched."""

import os
import subprocess
from pathlib import Path

from tests.support.programs import checked, wait_until
from tests.support.web_servers import SBIN, installed


class Docker:
    """A running daemon. Its images and containers are in a folder, and are gone when the context ends."""

    def __init__(self, folder):
        self.folder = folder
        self.environ = os.environ | {"DOCKER_HOST": f"unix://{folder}/socket", "DOCKER_BUILDKIT": "0", "PATH": SBIN}

    def __enter__(self):
        program = installed("dockerd")
        self.folder.mkdir()
        options = ["--data-root", self.folder / "data", "--exec-root", self.folder / "run", "--pidfile"]
        command = [program, *options, self.folder / "pid", "--host", self.environ["DOCKER_HOST"]]
        with (output := self.folder / "output").open("ab") as file:
            self._daemon = subprocess.Popen(command, stdout=file, stderr=file, env=self.environ)
        wait_until(lambda: Path(self.folder, "socket").exists(), self._daemon, output)
        return self

    def __exit__(self, *_):
        self._daemon.terminate()
        self._daemon.wait()

    def __call__(self, *command, program="docker", environ=(), **how):
        """Run a command of `docker` or of another client, which must succeed; return its output."""
        return checked(installed(program), *command, env=self.environ | dict(environ), **how)

    def add_image(self, name, root, *changes):
        """Make a root folder an image."""
        options = [word for change in changes for word in ("--change", change)]
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            self("import", *options, "-", name, stdin=tar.stdout)
