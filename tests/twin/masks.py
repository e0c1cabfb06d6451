"""Masks for values that two simultaneous lives cannot share. MASKS lists everything that is normalized."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from tests.twin.life import Life


class Step(NamedTuple):
    """A step in a life: its label, and everything that a user sees of it."""

    label: str
    text: str


ZONES: Final = ("UTC", "Europe/Berlin")
"""The time zones of the organizations in a life."""
MARGIN_SECONDS: Final = 900
"""Maximum duration of a life: none may begin within this time before midnight in one of these zones."""
FIRST_HOUR: Final = 3
"""The hour in each zone from which a server detects jobs, which each life waits for."""


@dataclass(frozen=True)
class Clock:
    """The beginning of the lives, in seconds since the epoch."""

    started: float

    @classmethod
    def now(cls) -> "Clock":
        """Return a clock for lives that begin now. Raises SystemExit between shortly before midnight and FIRST_HOUR in
        one of ZONES.
        """
        now = datetime.now(UTC)
        for zone in ZONES:
            local, later = (one.astimezone(ZoneInfo(zone)) for one in (now, now + timedelta(seconds=MARGIN_SECONDS)))
            if local.hour < FIRST_HOUR or later.date() != local.date():
                raise SystemExit(f"It is {local:%H:%M} in {zone}: start between {FIRST_HOUR}:00 and 23:45.")
        return cls(now.timestamp())

    @property
    def today(self) -> date:
        """The UTC date on which the lives begin."""
        return datetime.fromtimestamp(self.started, UTC).date()


class Mask(NamedTuple):
    """A normalized field: in the steps with matching labels, each match of `pattern` becomes `shown`."""

    name: str
    pattern: str
    shown: str
    steps: str = ".*"


_SIZED: Final = "status|verify|doctor|backup|compact|publish"
"""The commands that print file sizes, which depend on the ids in footers."""
MASKS: Final = (
    Mask("API keys", r"tak_[\w-]{20,}", "<key>"),
    Mask("ids of API keys", r"\btak_\w{4,12}\b", "<key id>"),
    Mask("secrets of hooks", r"whsec_[\w+/=-]+", "<secret>"),
    Mask("signatures of messages", r"v1,[\w+/=]{40,}", "v1,<signature>"),
    Mask("codes of sign-in links and secrets of shares", r"(code=|hare/)[\w-]{16,}", r"\1<code>"),
    Mask("code in the form of a sign-in link", r'(?<=name="code" value=")[\w-]+', "<code>"),
    Mask("cookies of sessions", r"(?<=traffic=)[\w.-]{16,}", "<cookie>"),
    Mask("UUIDs", r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    Mask("ids of batches", r'(?<="id": )-?\d{15,}', "<batch id>", "files: .*"),
    Mask("sequence numbers of links files, made of times", r'(?<="traffic.sequence": )\d+', "<sequence>", "files: .*"),
    Mask("Caddy matchers named by jobs", r"(?<=@traffic_)[0-9a-f]{8}", "<job>"),
    Mask("ids of live visits", r"\b\d{18}\b", "<row>", "files: .*"),
    Mask("age of cached answers", r'(?<="oldest_age_seconds": )\d+', "<age>", "GET /analytics/cache-stats as .*"),
    Mask("id of the lake", r'(?<="lake": ")[0-9a-f]{32}', "<lake>", "published .*"),
    Mask("time of a mail", r"(?m)^(Date: ).*$", r"\1<now>", ".*mail.*"),
    Mask("ids of mails", r"(?<=Message-ID: <)[\d.]+", "<id>", ".*mail.*"),
    Mask("boundaries of parts of mails", r"={10,}\d+=+", "<boundary>", "mail.*"),
    Mask("names of published files", r"\b[0-9a-f]{16}(?=-<|\.parquet)", "<name>", "published.*|files.*"),
    Mask("sizes of published files", r'(?<="size": )\d+', "<size>", "published .*"),
    Mask("ids of messages", r"\b(evt|msg)_[0-9a-f]{8,}", r"<\1 id>"),
    Mask("ends of hooks' secrets", r'("secret_last4": "|…)[\w+/]{3}=', r'\1<end>'),
    Mask("ids of sessions and shares", r"(session |hares/|sions/)[0-9a-f]{16}\b", r"\1<id>"),
    Mask("time that a receiver took", r'(?<="ms": )\d+', "<ms>"),
    Mask("hashes of files with ids", r'(?<="sha256":")[0-9a-f]{64}', "<hash>", "(command|kills): erase.*"),
    Mask("tags of answers", r'(?<=etag: ")[0-9a-f]{32}', "<tag>"),
    Mask("ids of requests", r"(?m)^(x-request-id: ).*$", r"\1<id>"),
    Mask("the window of the rate limit", r"(?m)^(x-ratelimit-reset: )\d+$", r"\1<epoch>"),
    Mask("the clock of HTTP", r"(?m)^(date: ).*$", r"\1<now>"),
    Mask("time in a file's name", r"(?<=before-rebuild-)\d{8}T\d+", "<now>"),
    Mask("ages", r"\b\d+ (seconds?|minutes?) ago\b", "<duration> ago", "command: .*"),
    Mask("durations", r"\b\d+(\.\d+)? (s|ms|seconds?)\b", "<duration>", "command: .*"),
    Mask("sizes of files", r"\b[\d,.]+ (B|kB|MB|GB)\b", "<size>", f"(command|kills): ({_SIZED}).*"),
    Mask("speed of the first answer", r"(?m)^(ok|warning) +first answer .*$", "<speed of the first answer>",
         "command: doctor.*"),
    Mask("sizes of files in JSON", r'(?<=bytes":)\d+', "<size>", "command: status.*"),
    Mask("hash of what a copy holds", r'(?<="content":")[0-9a-f]{64}', "<hash>", "command: status.*"),
    Mask("padding of tables whose cells are masked", r" {2,}", "  ", "command: status.*"),
)  # fmt: skip
"""The masks in the order in which they are applied, after the paths, ports and names of a life and before its times."""

TIES: Final = {
    r"GET /jobs as .*|command: jobs list.*": r"\{.*?\}(?=,?\s*[\]{])",
    r"GET /app/jobs.*": r"<tr>.*?</tr>",
    r"mcp over stdio": r'\{\\"id\\": .*?\}',
    r"command: keys list": r"[^\n]*<key id>[^\n]*",
}
"""In these steps, rows with the same time are in the order of random ids, so all matches are sorted."""

_TOKEN: Final = re.compile(r"[\w-]{8,}(?:\.parquet)?")
"""A random id, or a file name that contains one; the paths and ports of a life do not match."""
_TIME: Final = re.compile(r"\b(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|\+00:00| UTC)?")
_MINUTE: Final = re.compile(r"\b(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d)(?![:\d])")
_MINUTE_ON_PAGES: Final = re.compile(r"\b(\d?\d [A-Z][a-z][a-z] 20\d\d) (\d\d:\d\d)\b")
_EPOCH: Final = re.compile(r"\b(1[789]\d{8})(\d{3}|\.\d+)?\b")


class Masks:
    """Normalizes the records of lives that began at the same time."""

    def __init__(self, clock: Clock) -> None:
        self._window = clock.started - 1, clock.started + MARGIN_SECONDS

    def record(self, life: "Life") -> list["Step"]:
        """Return the steps of a life, in which names replace the values that only this life has."""
        ids = {name: shown for name, shown in life.names.items() if _TOKEN.fullmatch(name)}
        others = sorted(life.names.keys() - ids.keys(), key=len, reverse=True)

        def named(text: str) -> str:
            for name in others:  # but not the beginning of a longer name
                text = life.names[name].join(re.split(rf"{re.escape(name)}(?![\w-])", text))
            return _TOKEN.sub(lambda found: ids.get(found[0], found[0]), text)

        labels = [self.masked("", named(step.label)) for step in life.steps]
        return [
            Step(label, self.masked(label, named(step.text))) for label, step in zip(labels, life.steps, strict=True)
        ]

    def masked(self, label: str, text: str) -> str:
        """Return the text of a step, with the fields in MASKS and the times of the life masked."""
        for mask in MASKS:
            if re.fullmatch(mask.steps, label):
                text = re.sub(mask.pattern, mask.shown, text)
        text = _TIME.sub(self._time("%Y-%m-%d %H:%M:%S", 0), text)
        text = _MINUTE.sub(self._time("%Y-%m-%d %H:%M", 60), text)
        text = _MINUTE_ON_PAGES.sub(self._time("%d %b %Y %H:%M", 60), text)
        text = _EPOCH.sub(lambda found: self._named(float(found[1]), 0) or found[0], text)
        for steps, pattern in TIES.items():
            if re.fullmatch(steps, label):
                rows = iter(sorted(re.findall(pattern, text, re.DOTALL)))
                text = re.sub(pattern, lambda _: next(rows), text, flags=re.DOTALL)  # noqa: B023  # within its turn
        return text

    def _time(self, form: str, slack: int) -> Callable[[re.Match[str]], str]:
        def shown(found: re.Match[str]) -> str:
            at = datetime.strptime(f"{found[1]} {found[2]}", form).replace(tzinfo=UTC).timestamp()
            return self._named(at, slack) or found[0]

        return shown

    def _named(self, at: float, slack: int) -> str:
        """Return `<now>` for a time during the lives, `<now±nd>` for a time n whole days away from them, and "" for any
        other."""
        first, last = self._window
        days = round((at - (first + last) / 2) / 86_400)
        if not first - slack <= at - days * 86_400 <= last:
            return ""
        return f"<now{days:+}d>" if days else "<now>"
