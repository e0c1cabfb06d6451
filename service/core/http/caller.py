"""Who sends a request, and what they may do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Caller:
    """The authenticated sender of a request."""

    organization: str
    role: str
    name: str  # the `sub` of an identity token, or the id of an API key
    is_key: bool
    is_share: bool = False

    @property
    def turn(self) -> tuple[str, bool]:
        """Whose turn work for this caller takes: its organization's, last if it is a share."""
        return self.organization, self.is_share

    @property
    def may_write(self) -> bool:
        """Whether this caller may use endpoints that write."""
        return self.role != "viewer"

    @property
    def may_manage_keys(self) -> bool:
        """Whether this caller may create and revoke API keys. An API key may not."""
        return self.may_write and not self.is_key
