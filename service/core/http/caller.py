"""The sender of a request, and its permissions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Caller:
    """The authenticated sender of a request."""

    organization: str
    role: str
    name: str  # the `sub` of an identity token, the id of an API key, or "session" or "share" with an id
    is_key: bool
    is_share: bool = False

    @property
    def turn(self) -> tuple[str, bool]:
        """The caller's organization, and whether its work has the low priority of a share: arguments for a Pool."""
        return self.organization, self.is_share

    @property
    def may_write(self) -> bool:
        """True if this caller may use endpoints that write."""
        return self.role != "viewer"

    @property
    def may_manage_keys(self) -> bool:
        """True if this caller may create and revoke API keys, which an API key may not."""
        return self.may_write and not self.is_key
