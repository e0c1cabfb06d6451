"""API operations on the exclusions of the caller's organization: the owner's visits, and files."""

import asyncio
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.json import encode
from starlette.responses import Response

from data import Lake
from data.manifest.exclusions import ExclusionRecord
from data.rules.exclusions import ExclusionKind
from service.core.clock import Time
from service.core.http.bodies import reject_body
from service.core.http.errors import NotFound
from service.core.http.operations import KIB, Call, Operation, Operations, writer
from service.core.http.responses import JsonResponse
from service.exclusions import choices

OPERATIONS = Operations[Lake]()


class NewExclusion(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that excludes the owner's visits."""

    kind: ExclusionKind
    value: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=choices.MAX_VALUE_LENGTH,
            description="an address or a network; a case-insensitive pattern (RE2) for user agents; or a path, "
            "including everything below it",
        ),
    ]


class ExclusionRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that sets visits aside."""

    id: Annotated[str | None, Meta(description="null if the value is hidden")]
    kind: ExclusionKind
    value: Annotated[str | None, Meta(description="normalized; null for an address, if the caller is a viewer")]
    since: Annotated[Time, Meta(description="when the rule was added; it sets aside visits that land from then on")]
    visits: Annotated[int, Meta(description="visits that this rule set aside; a visit may count for several rules")]


class FilesChoice(Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of whether answers count files: images, stylesheets, scripts and fonts."""

    files: Literal["aside", "counted"]


@OPERATIONS.handles(
    Operation(
        "GET /exclusions", "list-exclusions",
        "The rules that set the owner's visits aside. Viewers do not see addresses.",
        {"200": list[ExclusionRule]},
    )
)  # fmt: skip
async def list_rules(lake: Lake, call: Call) -> list[ExclusionRule]:
    rules = await asyncio.to_thread(lake.manifest.exclusions.records, call.organization)
    return [_record(record, sees_addresses=call.caller.may_write) for record in rules]


@OPERATIONS.handles(
    Operation(
        "POST /exclusions", "add-exclusion",
        "Set visits aside from now on: they are stored, but not counted. 200: the rule already existed. Only for roles "
        "that may write.",
        {"201": ExclusionRule, "200": ExclusionRule}, writer, NewExclusion, 4 * KIB, errors="409",
        description="Rules for addresses apply only to new visits. For earlier visits by an agent or to a path, run "
        "`traffic reclassify` on the server.",
    )
)  # fmt: skip
async def add(lake: Lake, call: Call) -> Response:
    kind, value = call.body.kind, call.body.value
    record, is_new = await asyncio.to_thread(choices.add_rule, lake, call.organization, kind, value)
    return JsonResponse(encode(_record(record)), 201 if is_new else 200)


@OPERATIONS.handles(
    Operation("GET /exclusions/files", "get-files", "The choice of whether answers count files.", {"200": FilesChoice})
)  # fmt: skip
async def read_files(lake: Lake, call: Call) -> FilesChoice:
    is_aside = await asyncio.to_thread(lake.manifest.exclusions.are_files_aside, call.organization)
    return FilesChoice("aside" if is_aside else "counted")


@OPERATIONS.handles(
    Operation(
        "PUT /exclusions/files", "switch-files",
        "Leave files out of answers, or count them. Only for roles that may write.",
        {"200": FilesChoice}, writer, FilesChoice, 4 * KIB, errors="409",
        description="Applies to all days immediately: earlier answers are no longer served from the cache. The server "
        "recounts closed days at its next maintenance; until then, answers are slower. 409: visits classified by "
        "older rules must first be classified again, with `traffic files aside --org ORGANIZATION` on the server.",
    )
)  # fmt: skip
async def switch_files(lake: Lake, call: Call) -> FilesChoice:
    aside = call.body.files == "aside"
    await asyncio.to_thread(lambda: choices.switch_files(lake, call.organization, aside=aside))
    return FilesChoice(call.body.files)


@OPERATIONS.handles(
    Operation(
        "DELETE /exclusions/{id}", "remove-exclusion",
        "Remove a rule, so that new visits count. Visits already set aside stay aside until `traffic reclassify`, or "
        "forever if the rule is for an address. Only for roles that may write.",
        {"200": ExclusionRule}, writer,
    )
)  # fmt: skip
async def remove(lake: Lake, call: Call) -> ExclusionRule:
    reject_body(call.request)
    removed = await asyncio.to_thread(choices.remove_rule, lake, call.organization, call.path["id"])
    if removed is None:
        raise NotFound("No rule has this id.", "List the rules to see their ids.")
    return _record(removed)


def _record(record: ExclusionRecord, *, sees_addresses: bool = True) -> ExclusionRule:
    """Return a rule in the form that responses use; an address without its id and value unless `sees_addresses`."""
    rule, since, visits = record
    if rule.kind == "address" and not sees_addresses:
        return ExclusionRule(None, rule.kind, None, since, visits)
    return ExclusionRule(choices.rule_id(rule), rule.kind, rule.value, since, visits)
