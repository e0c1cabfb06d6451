"""The log: one JSON object a line. Nothing a client wrote is in it: no token, no address, no path of its own, no value.

Lines are written by a thread, so that no request waits for whoever reads them.
"""

import logging
import threading
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import BinaryIO, Final, NamedTuple

import orjson

WRITE_INTERVAL_SECONDS: Final = 0.1
MAX_WAITING_LINES: Final = 100_000
"""Lines that wait for a slow reader; more are dropped, and how many is told."""


class Outcome(NamedTuple):
    """What is told of a request, as of many others."""

    method: str
    route: str
    status: int
    organization: str | None


class Log:
    """Writes lines to a stream until it is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._dropped = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def line(self, level: str, event: str, **fields: object) -> None:
        """Note what happened. Never waits and never raises."""
        if len(self._lines) < MAX_WAITING_LINES:
            self._lines.append(_line(level, event, fields))
        else:
            self._dropped += 1

    def request(self, request_id: str, outcome: Outcome, seconds: float) -> None:
        """Note what became of the request that was answered with this X-Request-Id."""
        method, route, status, organization = outcome
        fields = {"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 2)}
        self.line("info", "request", id=request_id, **fields, organization=organization)

    def close(self) -> None:
        """Write what waits, and end."""
        self._is_closing.set()
        self._thread.join(timeout=5)

    def _write(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closing.wait(
                WRITE_INTERVAL_SECONDS
            )  # to wake it for each line would cost more than the line
            count = len(self._lines)
            lines = self._lines[:count]
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(_line("warning", "dropped", {"lines": dropped}))
            self._put(b"".join(lines))
            del self._lines[:count]

    def _put(self, lines: bytes) -> None:
        try:
            self._stream.write(lines)
            self._stream.flush()
        except (OSError, ValueError):  # a full disk, a reader that left, a closed stream: the service goes on
            return


class LogHandler(logging.Handler):
    """Lets what libraries and the data floor log be lines of the log, too."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Note a warning or an error."""
        fields = error_fields(record.exc_info[1]) if record.exc_info and record.exc_info[1] else {}
        self._log.line(record.levelname.lower(), record.name, message=record.getMessage(), **fields)


def error_fields(error: BaseException) -> dict[str, object]:
    """What is told of an error that nobody foresaw: its type and where it arose. Its text may hold a client's words."""
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    locations = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "places": locations}


def _line(level: str, event: str, fields: Mapping[str, object]) -> bytes:
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    line = {"at": at, "level": level, "event": event, **fields}
    return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
