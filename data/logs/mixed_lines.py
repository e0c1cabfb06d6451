"""Reads logs with several formats: lines that are not in the log's own format are read in other formats.

Each line is read separately, so the result depends only on the content, not on how it is split into blocks. The log's
own format comes first. Other formats are tried only for the remaining lines, and only if a single line is enough to
recognize them.
"""

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from data.logs.format_names import FORMATS, WHOLE_FILE_FORMATS
from data.logs.formats import REQUIRED_TEXTS, FormatContext, LineReader, vague_reasons

_OTHERS: Final = tuple(name for name in FORMATS if name not in WHOLE_FILE_FORMATS)


def read_mixed(reader: LineReader, lines: pa.Table, log_format: str, context: FormatContext) -> dict[str, pa.Table]:
    """Return the requests in `lines` by format, as read by LineReader.read_all, starting with the log's own format.

    Lines that no format can read are in the first table, with the reason.
    """
    requests = reader.read_all(lines, log_format, context)
    found, reason = {log_format: requests}, requests["reason"]
    if reason.null_count == len(reason):  # most blocks are in one format
        return found
    rest = _of_numbers(lines, requests["number"].filter(pc.is_in(reason, pa.array(vague_reasons(log_format)))))
    for other in _OTHERS:
        likely = rest.filter(pc.match_substring(rest["line"], REQUIRED_TEXTS.get(other, "")))
        if other == log_format.partition(" ")[0] or not len(likely):
            continue
        requests = reader.read(likely, other, context)
        requests = requests.filter(requests["reason"].is_null())
        if len(requests):
            found[other] = requests
            rest = _of_numbers(rest, requests["number"], are_left_out=True)
            found[log_format] = _of_numbers(found[log_format], requests["number"], are_left_out=True)
    return found


def _of_numbers(table: pa.Table, numbers: pa.ChunkedArray, are_left_out: bool = False) -> pa.Table:
    """Return the rows with these line numbers; with `are_left_out`, all other rows."""
    are_there = pc.is_in(table["number"], numbers.combine_chunks())
    return table.filter(pc.invert(are_there) if are_left_out else are_there)
