"""`traffic serve`: serves the API and the pages from a lake."""

import logging
import os
import sys
from contextlib import ExitStack
from typing import Annotated, Final

from service.core.commands.options import DEFAULT_LAKE, CommandRow, LakeOption, announce_new_lake, flag
from service.core.commands.printing import inform
from service.core.program import command_line
from service.core.settings import cluster_options, read_settings, setting

_CLAIM: Final = "serving"
"""The name of the claim that a server makes on its lake."""


def serve(
    host: Annotated[str, flag("host")] = setting("host").default,
    port: Annotated[str, flag("port")] = setting("port").default,
    base_path: Annotated[str, flag("base_path")] = setting("base_path").default,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Serve the API and the pages. Settings without a flag are environment variables; see service/core/settings.md.

    The log goes to stdout, as one JSON object for each request and each problem.

    Example: TRAFFIC_TRUSTED_PROXIES=127.0.0.1 traffic serve --port 8080 --base-path /v1
    """
    settings = read_settings(os.environ, host=host, port=port, base_path=base_path, lake=str(lake))
    from data.store.layout import claim, holder_of
    from service.app.application import create_app
    from service.core.logs import Log, LogHandler
    from service.server.run import listen, serve_on

    if other := holder_of(settings.lake / ".staging", _CLAIM):
        inform(
            f"{settings.lake} is already served at {other}. Stop that server first, unless this one replaces it: "
            "two servers share neither a cache nor a rate limit."
        )
    with ExitStack() as stack:
        listener = stack.enter_context(listen(settings.host, settings.port))
        port = listener.getsockname()[1]
        announce_new_lake(settings.lake)
        log = Log(sys.stdout.buffer)
        stack.callback(log.close)
        handler = LogHandler(log)
        logging.getLogger().addHandler(handler)
        stack.callback(logging.getLogger().removeHandler, handler)
        app = create_app(settings, log=log, opened=stack.enter_context(ExitStack()))
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"http://{name}:{port}{settings.base_path}/"
        if os.access(settings.lake / ".staging", os.W_OK):  # not in a read-only lake
            stack.enter_context(claim(settings.lake / ".staging", _CLAIM, url))
        monitor = None
        if settings.monitor_port is not None:
            monitor = app.monitor, stack.enter_context(listen("127.0.0.1", settings.monitor_port))
            print(f"Health and metrics at http://127.0.0.1:{monitor[1].getsockname()[1]}/", file=sys.stderr)
        if options := cluster_options(settings):
            read = f"the copy at {options.folder}" if options.is_published else options.folder or settings.lake
            counted = f"run at {options.shown_address}, and use {read}."
            print(f"Queries that read {options.from_visits:,} visits or more {counted}", file=sys.stderr)
        served = f"Serving {settings.lake} at {url}  (Ctrl-C stops)"
        if settings.pages:
            flags = {
                "host": settings.host,
                "port": str(port),
                "base-path": settings.base_path,
            }
            words = [word for name, value in flags.items() if value for word in (f"--{name}", value)]
            command = command_line(settings.lake, "sign-in", "--org", "ORGANIZATION", *words)
            served += f"\nSign in to its dashboard: {command}"
        serve_on(app, listener, lambda: print(served, file=sys.stderr, flush=True), monitor)


COMMANDS = {"serve": CommandRow(serve)}
