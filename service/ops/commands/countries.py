"""`traffic countries`: lists free country databases, and sets up a downloaded one."""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from service.core.commands.options import DEFAULT_LAKE, LakeOption, created_lake
from service.core.commands.printing import inform, printable
from service.core.settings import setting

FREE_DATABASES: Final = (
    (
        "DB-IP Lite", "CC BY 4.0, no account", "link to DB-IP where its countries are shown",
        "https://db-ip.com/db/download/ip-to-country-lite",
    ),
    (
        "IPinfo Lite", "CC BY-SA 4.0, free account", "credit IPinfo where its countries are shown",
        "https://ipinfo.io/developers/ipinfo-lite-database",
    ),
    (
        "GeoLite2 Country", "GeoLite End User License Agreement, free account",
        "credit MaxMind; delete an outdated file within 30 days",
        "https://dev.maxmind.com/geoip/geolite2-free-geolocation-data",
    ),
)  # fmt: skip
"""Free country databases: name, licence, conditions, and the page with the download and the licence."""


def countries(
    file: Annotated[Path | None, typer.Argument(help="the downloaded file: .mmdb, .mmdb.gz or .tar.gz")] = None,
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """List free country databases, or set up the downloaded FILE.

    FILE is checked by looking up an address, then copied into the lake, where import, follow and serve use it unless
    TRAFFIC_GEOIP or --geoip names another file. To update the database, run the command again with a newer file. The
    command does not use the network.

    Example: traffic countries dbip-country-lite-2026-11.mmdb.gz
    """
    if file is None:
        for name, licence, asks, url in FREE_DATABASES:
            typer.echo(f"{name} ({licence}; {asks})\n  {url}")
        inform("Download one in MMDB format, then run `traffic countries FILE`.")
        return
    from data.store.country_file import read_download, set_up

    download = read_download(file)
    opened = created_lake(lake)
    before = opened.country_database.exists()
    inform(f"{file}: {printable(download.description)}; for example, {download.address} is in {download.country}.")
    inform(f"It {'replaces' if before else 'is copied to'} {opened.country_database}.")
    set_up(opened, download)
    inform(
        "Visits imported from now on have countries; restart a running server or follower, so that it uses the "
        "database. Past visits have none, since addresses are not stored."
    )
    if named := os.environ.get(setting("geoip").variable):
        inform(f"{setting('geoip').variable} names {named}, which is used instead; unset it to use the copied file.")
