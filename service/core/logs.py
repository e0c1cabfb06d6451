"""The service's log, with one JSON object per line and no data of clients: no token, address, raw path or parameter.

A background thread writes the lines, so a slow reader of the log does not delay requests.
"""

import logging
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from typing import BinaryIO, Final, NamedTuple

import orjson

from service.core.clock import to_text, utc_now

WRITE_INTERVAL_SECONDS: Final = 0.1
MAX_WAITING_LINES: Final = 100_000
"""Maximum number of lines buffered for a slow reader. Further lines are dropped, and their number is logged."""


class Outcome(NamedTuple):
    """The logged properties of a request; metrics count requests by method, route and status."""

    method: str
    route: str
    status: int
    organization: str | None


class Log:
    """A log that writes its lines to a stream until it is closed."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._lines: list[bytes] = []
        self._dropped = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def line(self, level: str, event: str, **fields: object) -> None:
        """Add a line. Never blocks and never raises."""
        if len(self._lines) < MAX_WAITING_LINES:
            self._lines.append(_line(level, event, fields))
        else:
            self._dropped += 1

    def request(self, request_id: str, outcome: Outcome, seconds: float) -> None:
        """Add the line for a request; `request_id` is the X-Request-Id of its response."""
        method, route, status, organization = outcome
        fields = {"method": method, "route": route, "status": status, "ms": round(1000 * seconds, 2)}
        self.line("info", "request", id=request_id, **fields, organization=organization)

    def close(self) -> None:
        """Write the buffered lines and end the thread."""
        self._is_closing.set()
        self._thread.join(timeout=5)

    def _write(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._is_closing.wait(
                WRITE_INTERVAL_SECONDS
            )  # waking for each line would cost more than writing it
            count = len(self._lines)
            lines = self._lines[:count]
            if self._dropped:
                dropped, self._dropped = self._dropped, 0
                lines.append(_line("warning", "dropped", {"lines": dropped}))
            with suppress(
                OSError, ValueError
            ):  # full disk, closed pipe or stream: the service continues without its log
                self._stream.write(b"".join(lines))
                self._stream.flush()
            del self._lines[:count]


class LogHandler(logging.Handler):
    """A handler that forwards warnings and errors from Python's logging, which libraries and data/ use, to the log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Add the line for a warning or an error."""
        fields = error_fields(record.exc_info[1]) if record.exc_info and record.exc_info[1] else {}
        self._log.line(record.levelname.lower(), record.name, message=record.getMessage(), **fields)


def error_fields(error: BaseException) -> dict[str, object]:
    """Return the log fields of an unexpected error: its type and stack, but not its message, which may contain a
    client's data.
    """
    frames = traceback.extract_tb(error.__traceback__)[-8:]
    locations = [f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__name__, "places": locations}


def _line(level: str, event: str, fields: Mapping[str, object]) -> bytes:
    at = to_text(utc_now(), "milliseconds")
    line = {"at": at, "level": level, "event": event, **fields}
    return orjson.dumps(line, default=str, option=orjson.OPT_APPEND_NEWLINE)
