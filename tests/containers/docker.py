"""Docker's daemon with its own folder, socket and network namespace: no image, container, port or firewall rule of this
computer is touched.
"""

import os
import shlex
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
        self.folder.mkdir()
        options = ["--data-root", self.folder / "data", "--exec-root", self.folder / "run", "--pidfile"]
        daemon = [installed("dockerd"), *options, self.folder / "pid", "--host", self.environ["DOCKER_HOST"]]
        with_loopback = [installed("ip"), "link", "set", "lo", "up"]
        command = ["unshare", "--net", "sh", "-c", f'{shlex.join(with_loopback)} && exec "$@"', "sh", *daemon]
        with (output := self.folder / "output").open("ab") as file:
            self._daemon = subprocess.Popen(command, stdout=file, stderr=file, env=self.environ)
        wait_until(lambda: Path(self.folder, "socket").exists(), self._daemon, output)
        return self

    def __exit__(self, *_):
        self._daemon.terminate()
        self._daemon.wait()

    def __call__(self, *command, program="docker", environ=(), **how):
        """Run `docker` or another client in the daemon's network; it must succeed. Return its output."""
        enter = [installed("nsenter"), "--target", str(self._daemon.pid), "--net", "--"]
        return checked(*enter, installed(program), *command, env=self.environ | dict(environ), **how)

    def add_image(self, name, root, *changes):
        """Make a root folder an image."""
        options = [word for change in changes for word in ("--change", change)]
        with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
            self("import", *options, "-", name, stdin=tar.stdout)
