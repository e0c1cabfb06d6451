"""`traffic classify`: classifies requests, and explains which rules matched."""

import json
import sys
from contextlib import closing, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data import BadInput, Lake
from data.text import plural
from service.core.commands.options import DEFAULT_LAKE, LakeOption
from service.core.commands.printing import console, pasteable, printable

if TYPE_CHECKING:
    from data.rules.classifier import Classifier, Request
    from data.rules.ip_lists import FetchedList
    from data.rules.ip_verification import Verifier
    from data.visits import Classification

    _Rules = tuple[Classifier, Verifier]

KEYS: Final = ("user_agent", "referrer", "url", "ip")


def classify(
    user_agent: Annotated[
        str | None, typer.Option(help="User-Agent header, as sent or as written in a log", show_default=False)
    ] = None,
    referrer: Annotated[str, typer.Option(help="Referer header")] = "",
    url: Annotated[str, typer.Option(help="the request: a URL, or a path with its query")] = "",
    ip: Annotated[str, typer.Option(help="the client's IP address; used for verification only, not stored")] = "",
    jsonl: Annotated[
        str, typer.Option(help="file (- for stdin) with one JSON object per line, with any of these options as keys")
    ] = "",
    lake: LakeOption = DEFAULT_LAKE,
) -> None:
    """Classify a GET request and print which rules matched; or, with --jsonl, print one JSON object per input line.

    The --ip is checked against the IP lists that `traffic agents refresh` stored in the lake. The lake's own
    agents and newer tables are used, too.

    Example: traffic classify --user-agent "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
    """
    from data.rules.classifier import shared_classifier
    from data.rules.ip_verification import Verifier
    from data.rules.lake_tables import SHIPPED
    from data.store.ip_list_files import snapshots
    from data.store.lake_tables import lake_tables

    fields = dict(zip(KEYS, (user_agent or "", referrer, url, ip), strict=True))
    if bool(jsonl) is (user_agent is not None) or (jsonl and any(fields.values())):
        raise BadInput('give a request with --user-agent ("" for none), or many with --jsonl.')
    lists: dict[str, FetchedList] = {}
    tables = SHIPPED
    if (lake / "manifest.sqlite").exists():
        with closing((opened := Lake(lake, must_write=False)).manifest):
            lists, tables = snapshots(opened), lake_tables(opened)
    rules = shared_classifier(tables), Verifier(lists, tables=tables)
    if jsonl:
        _classify_lines(jsonl, rules)
    else:
        _explain(fields, rules)


def _classify(fields: dict[str, str], rules: "_Rules") -> tuple["Request", "Classification"]:
    from data.rules.classifier import Request

    classifier, verifier = rules
    request = Request.from_url(fields["user_agent"], fields["referrer"], fields["url"])
    claimed, ip = classifier.classify(request), fields["ip"]
    return request, verifier.verify(claimed, ip, datetime.now(UTC).date()) if ip else claimed


def _explain(fields: dict[str, str], rules: "_Rules") -> None:
    """Print the classification of a request, the result of the IP verification, and every rule that matches."""
    from rich.table import Table

    (request, classification), (classifier, verifier) = _classify(fields, rules), rules
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in classification._asdict().items():
        table.add_row(name, printable(value or ""))
    table.add_row("", "")
    match, *others = classifier.matches(request)
    table.add_row("decided by", f"{match.rule}  {match.evidence}".rstrip())
    if fields["ip"]:
        verdict = verifier.verdict(match.classification.agent, fields["ip"], datetime.now(UTC).date())
        is_disguised = classification.detection_method == "ip_range" and classification.confidence == "medium"
        reason = f"{classification.agent} with a browser's user agent" if is_disguised else verdict.reason
        table.add_row("address", pasteable(printable(reason)))
    for method in verifier.verification_methods(match.classification.agent):
        table.add_row("to verify", method)
    for other in others:
        alternative = other.classification
        name = alternative.agent or alternative.ai_source or alternative.agent_kind or ""
        rule = f"{other.rule}  {other.evidence}".rstrip()
        table.add_row("else", f"{f'{alternative.bot_category} {name}'.rstrip()}: {rule}")
    table.add_row("rules", classifier.rules_version)
    console().print(table)


def _classify_lines(name: str, rules: "_Rules") -> None:
    """Print a result or an error object for each line, in order. Raises BadInput if any line is invalid."""
    import orjson

    given = sys.stdin.buffer if name == "-" and sys.stdin else ()  # stdin may be closed
    try:
        opened = nullcontext(given) if name == "-" else Path(name).open("rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise BadInput(f"{name} cannot be read: {error.strerror}.") from error
    failed, output = 0, sys.stdout.buffer
    with opened as lines:
        for number, line in enumerate(lines, 1):
            try:
                answer = _classify(_parse_line(line), rules)[1]._asdict()
            except BadInput as error:
                failed += 1
                answer = {"line": number, "error": str(error)}
            output.write(orjson.dumps(answer) + b"\n")
            if name == "-":
                output.flush()  # the program that writes to stdin may wait for each result
    output.flush()
    if failed:
        told = f"{name}: {plural(failed, 'line')} could not be classified"
        raise BadInput(f"{told}; an error was printed in place of each result.")


def _parse_line(line: bytes) -> dict[str, str]:
    """Parse a line; return its strings by key, with "" for missing or null values. Raises BadInput if it is invalid."""
    try:
        parsed = json.loads(line.strip())  # the standard library, because it accepts lone surrogates
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise BadInput(f"not a JSON object with any of the keys {', '.join(KEYS)}")
    if unknown := [key for key in parsed if key not in KEYS]:
        raise BadInput(f"unknown key {unknown[0][:40]!r}; use any of {', '.join(KEYS)}")
    for key, value in parsed.items():
        if value is not None and not isinstance(value, str):
            raise BadInput(f"{key} must be a string")
    return {key: parsed.get(key) or "" for key in KEYS}
