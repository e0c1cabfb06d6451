"""The outcome of a check by `traffic doctor`."""

from typing import Literal, NamedTuple


class Check(NamedTuple):
    """The outcome of one check. `text` is a sentence; unless the level is ok, it usually ends with a remedy."""

    level: Literal["ok", "warning", "broken"]
    subject: str
    text: str
