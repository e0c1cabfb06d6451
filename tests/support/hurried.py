"""Servers with shorter deadlines for connections than in production, so that tests do not have to wait as long.

The servers also accept queries over a hundred years: such answers take longer and are larger than any real answer.
"""

from contextlib import contextmanager

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
def hurried(serving, lake, proxies="", monitor="", **constants):
    """Run `traffic serve` with other deadlines; yield its port and its process, which must end with exit code 0 and
    without a traceback.
    """
    before = (
        "import queries.parameters; queries.parameters.MAX_DAYS = 36_600\n"
        "import service.server.connection as limits, service.server.run as server\n"
        "for module in (limits, server):\n"
        f" vars(module).update({{name: value for name, value in {constants}.items() if name in vars(module)}})\n"
    )
    with serving(lake, before=before, trusted_proxies=proxies, monitor_port=monitor) as server:
        yield server.port, server.process
        server.process.terminate()
        assert server.process.wait(60) == 0
        assert "Traceback" not in server.process.stderr.read()
