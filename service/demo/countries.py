"""The countries of the sample's addresses, which are reserved and therefore in no country database."""

from bisect import bisect
from ipaddress import ip_address
from itertools import accumulate
from typing import Final

PEOPLE: Final = (
    ("US", 58), ("DE", 23), ("GB", 22), ("IN", 20), ("FR", 14), ("BR", 12), ("CA", 11), ("NL", 9), ("JP", 9), ("ES", 8),
    ("AU", 8), ("IT", 7), ("PL", 6), ("SE", 5), ("MX", 5), ("SG", 4), ("KR", 4), ("CH", 4), ("ID", 4), ("TR", 3),
    ("ZA", 3), ("NG", 2), ("AT", 2), ("NO", 2), ("AR", 2), ("UA", 2), ("KE", 1), ("EG", 1), ("NZ", 1), ("PT", 1),
    ("CL", 1), ("VN", 1), ("IS", 1),
)  # fmt: skip
"""How many of the 256 networks of people are in each country."""
AGENTS: Final = (("US", 50), ("IE", 6), ("DE", 4), ("SG", 4))
"""How many of the 64 addresses in each network of agents, which run in data centres, are in each country."""


class SampleCountries:
    """A substitute for CountryDatabase that knows the addresses of a Sample."""

    def lookup(self, address: str, /) -> str | None:
        """Return an address's country: for people, by the network; for agents, by the last byte."""
        number = ip_address(address)
        if number.version == 6:  # 2001:db8:network::
            return _country(PEOPLE, number.packed[4])
        _, second, third, fourth = number.packed
        return _country(PEOPLE, third) if second == 19 else _country(AGENTS, fourth)


def _country(weights: tuple[tuple[str, int], ...], number: int) -> str:
    """Return the country for a number below the sum of the weights."""
    ends = list(accumulate(weight for _, weight in weights))
    return weights[bisect(ends, number)][0]
