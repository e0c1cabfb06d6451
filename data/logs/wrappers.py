"""Describes how Docker and log collectors wrap log lines in JSON objects, and keeps together the parts of a line
that Docker splits.

formats/wrapped.sql extracts the lines.
"""

import re
from typing import Final

TEXT_PATHS: Final = (
    "/event/original", "/event.original", "/log", "/message", "/_raw", "/result/_raw", "/line", "/MESSAGE",
    "/textPayload",
)  # fmt: skip
"""JSON pointers to the keys that may contain a line, the most reliable first.

Evidence, in this order:
- Filebeat, Logstash: https://www.elastic.co/docs/reference/ecs/ecs-event
- Docker: https://docs.docker.com/engine/logging/drivers/json-file/;
  Fluent Bit: https://docs.fluentbit.io/manual/pipeline/inputs/tail
- Vector: https://vector.dev/docs/reference/configuration/global-options/;
  Filebeat: https://www.elastic.co/docs/reference/ecs/ecs-base;
  Datadog: https://docs.datadoghq.com/logs/log_configuration/archives/
- Splunk: https://docs.splunk.com/Documentation/Splunk/latest/Knowledge/Usedefaultfields
- logcli, for what Promtail sent to Loki: https://grafana.com/docs/loki/latest/query/logcli/
- journalctl: https://systemd.io/JOURNAL_EXPORT_FORMATS/
- Google Kubernetes Engine: https://cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry
"""

_PART_BYTES: Final = 1 << 14
"""The size of each part of a line that Docker splits.

Evidence: https://github.com/moby/moby (daemon/logger/copier.go)
"""
_MAX_PARTS: Final = 8
"""Maximum number of parts; a line with more parts is too long to be read."""
_MAX_ENTRY_BYTES: Final = 1 << 17
"""Maximum size of an entry with part of a line; a longer entry contains a whole line."""
_TEXT: Final = re.compile(rb'\{"log": ?"(?:[^"\\]|\\.)*?(\\n)?", ?"stream"')


def whole_lines_end(text: bytes) -> int:
    """Return the offset after the last whole line (0: there is none). Parts of a line split by Docker stay together."""
    cut = end = text.rfind(b"\n") + 1
    for _ in range(_MAX_PARTS):
        start = text.rfind(b"\n", 0, max(cut - 1, 0)) + 1
        if not _is_continued(text[start : min(cut, start + _MAX_ENTRY_BYTES)]):
            return cut
        cut = start
    return end


def _is_continued(entry: bytes) -> bool:
    """Return whether an entry of Docker's json-file contains part of a line, but not its last part."""
    found = _TEXT.match(entry) if len(entry) > _PART_BYTES and entry.startswith(b'{"log"') else None
    return found is not None and not found[1]
