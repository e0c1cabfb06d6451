"""A Debian system in a container whose init is systemd."""

import subprocess
from pathlib import Path

from tests.support.programs import checked, wait_until
from tests.support.web_servers import installed


class Machine:
    """A started system. It is shut down when the context ends; its files stay."""

    def __init__(self, root):
        self.root = root

    def __enter__(self):
        (self.root / "etc/machine-id").write_text("")
        (self.root / "etc/hostname").write_text("traffic\n")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost traffic\n")
        alone = ["--register=no", "--keep-unit", "--private-network", "--resolv-conf=off"]
        options = ["--boot", "--console=pipe", "--machine=traffic", *alone]
        command = [installed("systemd-nspawn"), *options, "--directory", self.root]
        output = self.root.with_suffix(".output")
        with output.open("ab") as file:
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
        wait_until(self._is_started, self._nspawn, output)
        return self

    def __exit__(self, *_):
        self._nspawn.terminate()
        self._nspawn.wait()

    def _is_started(self):
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children").read_text().split()
        if not children:
            return False
        (self._init,) = children
        command = self._entered("systemctl", "is-system-running")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() in {"running", "degraded"}  # degraded: Debian's own unit of Caddy has no network

    def _entered(self, *command):
        namespaces = ["--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup"]
        environ = ["env", "-i", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]
        return [installed("nsenter"), "--target", self._init, *namespaces, "--", *environ, *command]

    def __call__(self, script):
        """Run a shell script in the system, which must succeed; return its output."""
        return checked(*self._entered("bash", "-euc", script))
