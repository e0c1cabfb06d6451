"""The commands for access, by name."""

from typing import Final

from service.access.commands import keys, sign_in
from service.core.commands.options import CommandRow

COMMANDS: Final = {
    "sign-in": CommandRow(sign_in.sign_in),
    "keys": keys.app,
}
