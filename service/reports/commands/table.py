"""The commands that print answers, by name."""

from typing import Final

from service.core.commands.filters import WithParameters
from service.core.commands.options import CommandRow
from service.reports.commands import behaviour, query

COMMANDS: Final = {
    "query": CommandRow(query.query, WithParameters),
    "views": CommandRow(query.views, WithParameters),
    "behaviour": behaviour.app,
}
