"""The value of one visit in each category, as the operator configures it, for traffic-value-breakdown.sql."""

from decimal import Decimal
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import tomli

from data import BOT_CATEGORIES, BadInput


class TrafficValue(NamedTuple):
    """The value of one visit of one traffic type."""

    traffic_type: str
    ten_thousandths: int  # of one unit of the currency; an integer, to avoid rounding errors
    currency: str


def load_traffic_values(path: Path | None = None) -> list[TrafficValue]:
    """Return the values in a file like traffic_values.toml, by default in the shipped file. A category without a value
    gets 0. Raises BadInput if the file is unreadable or invalid.
    """
    source = path or resources.files("queries").joinpath("traffic_values.toml")
    try:
        table = tomli.loads(source.read_text("utf-8"), parse_float=Decimal)
    except (OSError, tomli.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{source} cannot be read as traffic values: {error}.") from error
    currency, values = table.get("currency"), table.get("value_per_visit")
    if not isinstance(currency, str) or not isinstance(values, dict):
        raise BadInput(f"{source} needs a currency and a table [value_per_visit].")
    unknown = values.keys() - set(BOT_CATEGORIES)
    if unknown:
        raise BadInput(f"{source} sets a value for {min(unknown)!r}; the categories are {', '.join(BOT_CATEGORIES)}.")
    found = []
    for name in BOT_CATEGORIES:
        value = values.get(name, 0)
        is_number = isinstance(value, int | Decimal) and not isinstance(value, bool)
        amount = Decimal(value if is_number else "NaN")
        if not amount.is_finite() or not 0 <= amount <= 10**6 or amount * 10_000 % 1:
            raise BadInput(f"{source}: {name} must be a number from 0 to 1,000,000 with at most four decimals.")
        found.append(TrafficValue(name, int(amount * 10_000), currency))
    return found
