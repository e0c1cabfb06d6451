"""Servers whose deadlines for connections are other than the true ones, so that tests need not wait so long."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from service.settings import setting

HURRIED = {
    "SWEEP_SECONDS": 0.05,
    "IDLE_TIMEOUT_SECONDS": 0.5,
    "HEADER_TIMEOUT_SECONDS": 0.5,
    "BODY_IDLE_TIMEOUT_SECONDS": 0.7,
    "BODY_TIMEOUT_SECONDS": 1.5,
    "WRITE_TIMEOUT_SECONDS": 1.5,
    "LINGER_SECONDS": 0.2,
}


@contextmanager
def serving(lake, proxies="", **constants):
    """The port and process of a `traffic serve` with other deadlines; it ends without having told of any trouble."""
    code = (
        "import service.server.connection as limits, service.server.run as server, service.commands as commands\n"
        "for module in (limits, server):\n"
        f" vars(module).update({{name: value for name, value in {constants}.items() if name in vars(module)}})\n"
        "commands.main()"
    )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("TRAFFIC_")}
    environ |= {setting("lake").variable: str(lake.root), setting("trusted_proxies").variable: proxies}
    command = [sys.executable, "-c", code, "serve", "--port", "0"]
    log = (Path(lake.root).parent / "log").open("wb")
    with log, subprocess.Popen(command, stderr=subprocess.PIPE, stdout=log, text=True, env=environ) as process:
        try:
            line = process.stderr.readline()
            yield int(re.search(r":(\d+)/", line)[1]), process
        finally:
            process.terminate()
            told = process.stderr.read()
        assert "Traceback" not in told
        assert process.wait(60) == 0
