"""Marks a target as belonging to a lake, and rejects targets that are in use or keep deleted objects."""

import json
from typing import Final

from data.buckets.target import PARTIAL, ObjectStore
from data.errors import BadInput
from data.store.lake import Lake

MARK: Final = "traffic.json"
"""The object with the id of the lake that a target belongs to."""
_VERSIONS: Final = "it keeps earlier versions of objects"


def check_target(target: ObjectStore, lake: Lake) -> None:
    """Raise BadInput unless a target is marked as belonging to the lake, and keeps no earlier versions of objects."""
    _check_mark(target, lake)
    problem = target.versions_problem()
    if problem is None and target.put(MARK, _mark_body(lake)) is not None:  # the store does not report its versioning
        problem = _VERSIONS
    if problem:
        raise _keeps_versions(target.name, problem)


def mark_problem(target: ObjectStore, lake: Lake) -> str:
    """Return why a target is not marked as belonging to the lake; "" if it is."""
    found = target.get(MARK)
    if found == _mark_body(lake):
        return ""
    if found is None:
        return f"{target.name}/{MARK} is missing: `traffic publish --again` repairs it."
    return f"{target.name} holds a copy of another lake; choose another target, or delete its content."


def _check_mark(target: ObjectStore, lake: Lake) -> None:
    if problem := mark_problem(target, lake):
        raise BadInput(problem)


def _mark_body(lake: Lake) -> bytes:
    return json.dumps({"lake": lake.manifest.copies.existing_mark()}).encode()


def mark_target(target: ObjectStore, lake: Lake, *, again: bool) -> None:
    """Mark a target as belonging to the lake.

    Raises BadInput if the target contains anything else, keeps deleted objects, or does not support conditional writes;
    without `again`, also if it was published to before and its mark is missing.
    """
    lake.manifest.copies.mark()
    body, name = _mark_body(lake), target.name
    found, is_ours = target.get(MARK), bool(lake.manifest.copies.find(name))
    if found is None and is_ours and not again:
        _check_mark(target, lake)
    if found is None and not is_ours and any(not key.startswith(PARTIAL) for key in target.list("")):
        raise BadInput(f"{name} is not empty, and no lake is published there; choose another folder or prefix.")
    if found is None and target.put_if_absent(MARK, body):
        if target.put(MARK, body) is not None:
            raise _keeps_versions(name, _VERSIONS)
        if target.put_if_absent(MARK, body):
            raise BadInput(f"{name} does not support conditional writes (If-None-Match); choose another store.")
    _check_mark(target, lake)


def _keeps_versions(name: str, problem: str) -> BadInput:
    return BadInput(
        f"{name} cannot hold a copy: {problem}, so nothing can be erased from it; turn off the bucket's versioning, "
        "or choose another bucket."
    )
