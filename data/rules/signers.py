"""Names the agent of a request from its header `Signature-Agent` (Web Bot Auth). The signature itself is not verified.

The header is a dictionary (`sig1="https://chatgpt.com"`) or, in older drafts, a string (`"https://chatgpt.com"`):
https://datatracker.ietf.org/doc/draft-meunier-webbotauth-httpsig-directory/ The hosts come from the rows with `verify =
["signature:<host>"]` in agents.toml.
"""

import re
from collections.abc import Iterator
from typing import Final

import re2

from data.rules.bots import agent_classification, unescaped
from data.rules.lake_tables import SHIPPED, LakeTables
from data.text import ShortTextCache
from data.visits import Classification

MAX_LENGTH: Final = 1024
_SIGNATURE: Final = "signature:"
_MEMBER: Final = re2.compile(
    r'[ \t]*(?:[a-z*][a-z0-9_.*-]*=)?(?:"([^"\\]*)"|([^\s",;=]+))(?:[ \t]*;[^",]*(?:"[^"]*"[^",]*)*)?[ \t]*(,|$)'
)
"""A member: an optional key, a string or a bare address, optional parameters."""
_HOST: Final = re2.compile(r"(?i)(?:https://)?([a-z0-9-]+(?:\.[a-z0-9-]+)+)\.?(?::[0-9]+)?(?:[/?#].*)?")


class Signers:
    """Agents that sign their requests, by the host that publishes their keys. Earlier rows win."""

    def __init__(self, tables: LakeTables = SHIPPED) -> None:
        self._own = {row.agent for row in tables.own}
        self._by_host: dict[str, Classification] = {}
        for row in tables.agents():
            for method in row.verify:
                if method.startswith(_SIGNATURE):
                    signed = agent_classification(row, "medium", "signature")
                    self._by_host.setdefault(method.removeprefix(_SIGNATURE), signed)
        patterns = {host: signed for host, signed in self._by_host.items() if "*" in host}
        self._patterns = [(_pattern(host), signed) for host, signed in patterns.items()]
        self.agent = ShortTextCache(1 << 12, self._agent)
        """Returns the agent that a header's text names; None if it names no known agent."""

    def named(self, by_agent: Classification, header: str) -> Classification:
        """Return the agent that the header names; `by_agent` if it names no known agent or if `by_agent` is more
        specific.
        """
        signed = self.agent(header) if header else None
        return by_agent if signed is None or self.is_finer(by_agent, signed) else signed

    def is_finer(self, by_agent: Classification, signed: Classification) -> bool:
        """Return whether the classification by user agent and address is more specific than the header's, `signed`.

        It is more specific if the address shows another agent, or if the user agent names an agent in the lake's own
        table or an agent of the same operator.
        """
        if by_agent.detection_method == "ip_range":
            return by_agent.agent != signed.agent
        is_known = by_agent.agent in self._own or by_agent.operator == signed.operator
        return by_agent.device_type == "bot" and is_known

    def _agent(self, header: str) -> Classification | None:
        found = (self._of_host(host) for host in _hosts(unescaped(header)))
        return next((signed for signed in found if signed), None)

    def _of_host(self, host: str) -> Classification | None:
        exact = self._by_host.get(host)
        return exact or next((signed for pattern, signed in self._patterns if pattern.fullmatch(host)), None)


def _hosts(header: str) -> Iterator[str]:
    """Yield the hosts in a header, in lower case; none if its syntax is invalid or it is too long."""
    hosts, start = [], 0
    while start < len(header) <= MAX_LENGTH:
        member = _MEMBER.match(header, start)
        if not member:
            return
        host = _HOST.fullmatch(member[1] or member[2] or "")
        hosts += [host[1].lower()] if host else []
        start = member.end()
        if not member[3]:
            yield from hosts


def _pattern(host: str) -> "re.Pattern[str]":
    """Return the pattern for a host, in which `*` stands for one label."""
    return re.compile(re.escape(host).replace(r"\*", "[a-z0-9-]+"))
