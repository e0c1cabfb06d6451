"""`traffic demo`: serves generated sample traffic from a temporary lake."""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.commands.options import CommandRow, flag
from service.core.commands.printing import messages
from service.core.settings import read_settings, setting
from service.intake.commands.importing import judge_past_days

if TYPE_CHECKING:
    from rich.console import Console

VISITS = 60_000
DAYS = 90
_PORT = setting("port")
_VALUES = """\
currency = "USD"
[value_per_visit]
human = 0.25
ai_assistant = 0.05
ai_referral = 0.4
"""


def demo(
    port: Annotated[
        int,
        typer.Option(
            envvar=_PORT.variable, help="port to listen on; if it is in use, a free port is chosen", max=65_535
        ),
    ] = int(_PORT.default),
    visits: Annotated[int, typer.Option(min=1, help="number of visits to generate")] = VISITS,
    target: Annotated[str, flag("publish")] = "",
) -> None:
    """Generate sample traffic, import it into a temporary lake, and serve the dashboard and the API.

    Settings such as TRAFFIC_HOOK_NETWORKS apply as in `traffic serve`, except TRAFFIC_LAKE, TRAFFIC_HOST and
    TRAFFIC_VALUES.

    Example: traffic demo
    """
    from service.access.api_keys import ApiKeys
    from service.access.sessions import SessionStore, enter_url
    from service.app.application import create_app
    from service.core.control_database import ControlDatabase
    from service.server.run import listen, serve_on

    console = messages()
    with tempfile.TemporaryDirectory(prefix="traffic-demo-") as folder:
        lake = Lake(Path(folder) / "lake", create=True)
        _fill(lake, Path(folder), visits, console)
        control = ControlDatabase(lake)
        key = ApiKeys(control).create_key("demo", "demo")
        try:
            listener = listen("127.0.0.1", port)
        except BadInput:
            listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        settings = read_settings(
            os.environ,
            lake=str(lake.root), host="127.0.0.1", values=f"{folder}/values.toml", port=str(port), publish=target,
        )  # fmt: skip
        address = f"http://127.0.0.1:{port}{settings.base_path}"
        dashboard = enter_url(settings, SessionStore(control).create_link("demo", is_reusable=True))

        def ready() -> None:
            console.print(f"Serving at {address}  (Ctrl-C stops and deletes the sample).")
            console.print(f"Other commands read it with --lake {lake.root}\n")
            console.print(f"Dashboard: {dashboard}\n\nOr query the API:\n")
            print(f'curl -H "Authorization: Bearer {key}" "{address}/analytics/traffic-overview?range=30d"', flush=True)

        serve_on(create_app(settings), listener, ready)
        console.print("\nStopped; the sample is deleted.")


def _fill(lake: Lake, folder: Path, visits: int, console: "Console") -> None:
    from queries import Warehouse
    from service.demo.decisions import decide

    now = datetime.now(UTC)
    with ThreadPoolExecutor(1) as thread:  # takes half a second: defines the lake's relations for all later engines
        defining = thread.submit(lambda: Warehouse(lake).close())
        _import_sample(lake, folder, visits, now, console)
        defining.result()
    judge_past_days(lake, "demo")
    with console.status("Measuring repairs …"):
        decide(lake, "demo", now)


def _import_sample(lake: Lake, folder: Path, visits: int, now: datetime, console: "Console") -> None:
    from data.ingest.importer import Importer, Options
    from data.links.exports import read_export
    from data.links.links import change_links
    from service.demo.countries import SampleCountries
    from service.demo.problems import REPAIRED_REQUESTS, REQUESTS, write_log
    from service.demo.sample import Sample

    sample = Sample(visits, now.date(), DAYS, last_second=now.hour * 3_600 + now.minute * 60 + now.second)
    log, problems = folder / "access.log", folder / "problems.log"
    with console.status(f"Generating {plural(visits, 'visit')} over {DAYS} days …"):
        sample.write(log)
        for requests in (REQUESTS, REPAIRED_REQUESTS):
            write_log(problems, requests, now.date())
            with log.open("ab") as whole:  # one log, since each import writes a file per day
                whole.write(problems.read_bytes())
        sample.write_links(folder / "links.csv")
        (folder / "values.toml").write_text(_VALUES, "utf-8")
    with console.status("Importing the visits as a log …"):
        know_impostors(lake, now)
        summary = Importer(lake, countries=SampleCountries()).run(log, Options("demo"))
        change_links(lake, "demo", read_export(folder / "links.csv", now).links, now)
    total = plural(summary.visits, "generated visit")
    console.print(f"{total} imported, {summary.first_day} to {summary.last_day}.")


def know_impostors(lake: Lake, now: datetime) -> None:
    """Store the IP list that exposes the impostors in REQUESTS. Raises BadInput."""
    from data.rules.tables import IpList, load
    from data.store.ip_list_files import refresh
    from service.demo.problems import IP_LIST, IP_LIST_CONTENT

    rows = [row for row in load(IpList, "ip_lists") if row.name == IP_LIST]
    for result in refresh(lake, rows, lambda _: IP_LIST_CONTENT, now):
        if result.error:
            raise BadInput(result.error)


COMMANDS = {"demo": CommandRow(demo)}
