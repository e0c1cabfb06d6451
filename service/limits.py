"""At most 60 requests in any 60 seconds for each source address, as an ASGI wrapper of the finished application.

It stands before authentication and before routing, so that its four headers are on every response.
"""

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import RateLimited
from service.responses import render
from service.settings import Network

LIMIT: Final = 60
WINDOW_SECONDS: Final = 60.0
MOST_SOURCES: Final = 65_536
"""Past it the source that was silent longest is forgotten: memory is bounded whoever asks."""


class Verdict(NamedTuple):
    """What the limiter says of one request."""

    accepted: bool
    remaining: int
    wait_seconds: float  # until the oldest counted request leaves the window


class SlidingLog:
    """The times of the accepted requests of every source: exact, where counters and buckets only come near."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def hit(self, source: str) -> Verdict:
        """Count a request unless its source has used up its window. A refused request is not counted."""
        now = self._clock()
        times = self._times.get(source)
        if times is None:
            if len(self._times) >= MOST_SOURCES:
                self._times.popitem(last=False)
            times = self._times[source] = deque()
        else:
            self._times.move_to_end(source)
        while times and now - times[0] >= WINDOW_SECONDS:
            times.popleft()
        accepted = len(times) < LIMIT
        if accepted:
            times.append(now)
        return Verdict(accepted, LIMIT - len(times), times[0] + WINDOW_SECONDS - now)


class Limiter:
    """Wraps the finished application."""

    def __init__(
        self,
        app: ASGIApp,
        trusted_proxies: Sequence[Network] = (),
        log: SlidingLog | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._app = app
        self._trusted = tuple(trusted_proxies)
        self._log = log or SlidingLog()
        self._wall_clock = wall_clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 429, or let the application answer; either way with the four headers."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        verdict = self.verdict_of(scope)
        headers = self.headers(verdict)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(pair for pair in headers if pair[0] not in given)]
            await send(message)

        if verdict.accepted:
            await self._app(scope, receive, send_with_headers)
        else:
            await render(self.refusal(verdict))(scope, receive, send_with_headers)

    def verdict_of(self, scope: Scope) -> Verdict:
        """Count one request, known by its `client` and `headers`."""
        return self._log.hit(source_of(scope, self._trusted))

    def refusal(self, verdict: Verdict) -> RateLimited:
        """What a source is told that sent too much."""
        return RateLimited(LIMIT, _milliseconds(verdict))

    def headers(self, verdict: Verdict) -> list[tuple[bytes, bytes]]:
        """The four headers of a response. Reset is Unix time in seconds, Retry-After seconds to wait."""
        wait = 0 if verdict.remaining else math.ceil(_milliseconds(verdict) / 1000)
        return [
            (b"x-ratelimit-limit", b"%d" % LIMIT),
            (b"x-ratelimit-remaining", b"%d" % verdict.remaining),
            (b"x-ratelimit-reset", b"%d" % math.ceil(self._wall_clock() + verdict.wait_seconds)),
            (b"retry-after", b"%d" % wait),
        ]


def _milliseconds(verdict: Verdict) -> int:
    return max(1, math.ceil(verdict.wait_seconds * 1000))


def source_of(scope: Scope, trusted: Sequence[Network]) -> str:
    """The source a request counts for: an IPv4 address or the /64 of an IPv6 address.

    X-Forwarded-For is believed only from a trusted peer, and read from the right as far as trust reaches.
    """
    peer = scope["client"][0] if scope.get("client") else ""
    if not trusted or not _is_trusted(peer, tuple(trusted)):
        return _source(peer)
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    nearest = peer
    for hop in reversed(",".join(lines).split(",")):
        address = _without_port(hop.strip())
        if _address(address) is None:
            break
        nearest = address
        if not _is_trusted(address, tuple(trusted)):
            break
    return _source(nearest)


@lru_cache(4_096)
def _source(text: str) -> str:
    address = _address(text)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)))
    return str(address) if address else text


@lru_cache(4_096)
def _is_trusted(text: str, trusted: tuple[Network, ...]) -> bool:
    address = _address(text)
    return address is not None and any(address in network for network in trusted)


@lru_cache(4_096)
def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, ipaddress.IPv6Address) else address


def _without_port(hop: str) -> str:
    """`1.2.3.4:5` and `[::1]:5` as some proxies write them, without port and brackets."""
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
