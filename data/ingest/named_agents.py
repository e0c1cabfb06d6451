"""Identifies the agents in a block of requests not only by user agent, but also by address, signature and the edge's
verdict.

Live visits, which have no verdict from an edge, go through the other steps in live.py. Addresses, signatures and
verdicts are not stored.
"""

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from data.ingest.dictionary import DictionaryColumn, DistinctColumn, dictionary_encoded, map_distinct
from data.rules.edge import with_verdict
from data.rules.ip_verification import Verifier
from data.rules.signers import Signers
from data.visits import Classification

_EDGE: Final = ("verified_bot", "address_class", "bot_score")
"""The columns with the edge's verdict; a format has all of them or none."""


def named_agents(
    by_agent: DistinctColumn[Classification],
    encoded: dict[str, DictionaryColumn],
    requests: pa.Table,
    signers: Signers,
    verifier: Verifier,
) -> DistinctColumn[Classification]:
    """Return the classification of each row, corrected by its address, `Signature-Agent` and the edge's verdict."""
    named = _verified(verifier, by_agent, encoded)
    if _has_text(requests, "signature_agent"):
        named = map_distinct(signers.named, named, dictionary_encoded(requests["signature_agent"]))
        named = _verified(verifier, named, encoded, lambda found: found.detection_method == "signature")
    if any(_has_text(requests, name) for name in _EDGE):
        named = map_distinct(with_verdict, named, *(dictionary_encoded(requests[name]) for name in _EDGE))
    return named


def _has_text(requests: pa.Table, name: str) -> bool:
    """Return whether the format has this column and any request has a value in it."""
    return name in requests.schema.names and bool(pc.any(pc.not_equal(requests[name], "")).as_py())


def _verified(
    verifier: Verifier,
    by_agent: DistinctColumn[Classification],
    encoded: dict[str, DictionaryColumn],
    is_new: Callable[[Classification], bool] = lambda _: True,
) -> DistinctColumn[Classification]:
    """Return the classifications, after checking by address each classification that satisfies `is_new` and that an
    address can change.
    """
    values = enumerate(by_agent.values)
    verifiable = [index for index, value in values if is_new(value) and verifier.can_verify(value)]
    is_claim = pc.is_in(by_agent.indices, pa.array(verifiable, pa.int32()))
    claims = (encoded[name].where(is_claim) for name in ("ip", "day"))
    return map_distinct(partial(_verify, verifier), by_agent, *claims)


def _verify(verifier: Verifier, by_agent: Classification, ip: str | None, day: date | None) -> Classification:
    """Return a classification after checking it against the address, if there is an address."""
    return by_agent if ip is None or day is None else verifier.verify(by_agent, ip, day)
