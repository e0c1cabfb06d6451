"""The commands that bring in visits and links, by name."""

from typing import Final

from service.core.commands.options import CommandRow
from service.intake.commands import classify, follow, formats, importing, links

COMMANDS: Final = {
    "import": CommandRow(importing.import_logs),
    "follow": CommandRow(follow.follow),
    "classify": CommandRow(classify.classify),
    "formats": formats.app,
    "links": links.app,
}
