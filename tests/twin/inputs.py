"""The logs for both lives: they are written once, by this revision's sample, with dates relative to today."""

import gzip
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Final

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

from service.demo.problems import IP_LIST_CONTENT, REPAIRED_REQUESTS, REQUESTS, write_log
from service.demo.sample import Sample
from tests.twin.masks import Clock

DAYS: Final = 45
VISITS: Final = 6_000
ISSUER: Final = "https://login.example/"
AUDIENCE: Final = "traffic"
_LINE: Final = re.compile(r'(\S+):443 (\S+) - - \[(.+?)\] "(\S+) (\S+) (\S+)" (\d+) (\d+) "(.*?)" "(.*?)"$')
_MONTHS: Final = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


class Inputs:
    """A folder of logs, links and keys."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.today = clock.today
        sample = Sample(VISITS, self.today - timedelta(days=1), DAYS, links=200)
        sample.write(folder / "access.log")
        sample.write_links(folder / "links.csv")
        write_log(folder / "problems.log", REQUESTS, self.today)
        write_log(folder / "repairs.log", REPAIRED_REQUESTS, self.today)
        (folder / "gptbot.json").write_bytes(IP_LIST_CONTENT)
        lines = (folder / "access.log").read_text("ascii").splitlines(keepends=True)
        (folder / "begun.log").write_text("".join(lines[: len(lines) // 2]), "ascii")
        (folder / "access.log.1.gz").write_bytes(gzip.compress((folder / "access.log").read_bytes(), mtime=0))
        other = [*Sample(900, self.today - timedelta(days=1), 30, links=40, seed=7).lines()]
        fields = [found.groups() for found in map(_LINE.match, other) if found]
        self._write("caddy.log", (json.dumps(_caddy(*row)) for row in fields[:300]))
        self._write("nginx.json", (json.dumps(_nginx(*row)) for row in fields[300:600]))
        self._write("cloudfront.log", [*_CLOUDFRONT_HEAD, *(_cloudfront(*row) for row in fields[600:])])
        self._write("broken.log", [*other[:20], "no line of a log", *other[20:30], '1.2.3.4 - - [99/Foo/2026] "'])
        at = f"{self.today - timedelta(days=2):%d/%b/%Y}:10:00:00 +0000"
        agents = ["Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", *["curl/8.9.1"] * 31]
        ties = (f'203.0.113.9 - - [{at}] "GET /launch HTTP/1.1" 302 5 "-" "{agent}"' for agent in agents)
        self._write("ties.log", ties)  # a share of 1 in 32 is 3.125 %, which shows how shares are rounded
        self._write(
            "own.sql",
            ["SELECT country, bot_category, count(*) AS visits FROM visits_in_scope GROUP BY ALL ORDER BY ALL"],
        )
        self._write("rows.sql", ["SELECT * FROM visits_in_scope ORDER BY ALL"])
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        public = RSAAlgorithm(RSAAlgorithm.SHA256).to_jwk(self._key.public_key(), as_dict=True)
        self._write("jwks.json", [json.dumps({"keys": [{**public, "kid": "twin"}]})])

    def token(self, clock: Clock, organization: str, role: str) -> str:
        """Return an ID token for a user with this role."""
        now = int(clock.started)
        claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": role, "iat": now, "exp": now + 3_600}
        return jwt.encode({**claims, "org_id": organization, "role": role}, self._key, "RS256", {"kid": "twin"})

    def _write(self, name: str, lines) -> None:
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _iso(at: str) -> tuple[str, str]:
    """Return the date and time of an access log's timestamp, as in ISO 8601."""
    day, month, rest = at[:2], at[3:6], at[7:]
    return f"{rest[:4]}-{_MONTHS.index(month) + 1:02}-{day}", rest[5:13]


def _caddy(host, address, at, method, target, protocol, status, size, referrer, agent):
    day, clock = _iso(at)
    headers = {"User-Agent": [agent], **({} if referrer == "-" else {"Referer": [referrer]})}
    request = {"remote_ip": address, "client_ip": address, "proto": protocol, "method": method, "host": host}
    return {
        "level": "info", "ts": f"{day}T{clock}Z", "logger": "http.log.access", "msg": "handled request",
        "request": {**request, "uri": target, "headers": headers}, "status": int(status), "size": int(size),
    }  # fmt: skip


def _nginx(host, address, at, method, target, protocol, status, size, referrer, agent):
    day, clock = _iso(at)
    return {
        "time_iso8601": f"{day}T{clock}+00:00", "remote_addr": address, "request_method": method, "host": host,
        "request_uri": target, "server_protocol": protocol, "status": status, "body_bytes_sent": size,
        "http_referer": referrer, "http_user_agent": agent,
    }  # fmt: skip


_CLOUDFRONT_HEAD: Final = (
    "#Version: 1.0",
    (
        "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) "
        "cs(User-Agent) cs-uri-query"
    ),
)


def _cloudfront(host, address, at, method, target, protocol, status, size, referrer, agent):
    path, _, query = target.partition("?")
    quoted = agent.replace("%", "%25").replace(" ", "%20")
    row = (*_iso(at), "FRA50", size, address, method, host, path, status, referrer, quoted, query or "-")
    return "\t".join(row)
