"""The epochs of organizations: how often what their answers rest on was changed."""

import asyncio
from collections.abc import Callable


class Epochs:
    """Asks for them, once for all requests that came together. Belongs to one event loop."""

    def __init__(self, ask: Callable[[str], int]) -> None:
        """`ask` gives the epoch of an organization as it is now."""
        self._ask = ask
        self._told: dict[str, int] = {}

    def now(self, organization: str) -> int:
        """The epoch for anybody: it is never remembered, for the loop may look for requests before it forgets."""
        return self._ask(organization)

    def of_turn(self, organization: str) -> int:
        """The epoch for a request that is being read, and was there when the event loop last looked for requests.

        All of these were sent before the first of them is read: what that one is told is right for every other.
        """
        epoch = self._told.get(organization)
        if epoch is None:
            if not self._told:  # what is called soon is called before the loop looks again
                asyncio.get_running_loop().call_soon(self._told.clear)
            epoch = self._told[organization] = self._ask(organization)
        return epoch
