"""The commands that look after a lake, by name."""

from typing import Final

from service.core.commands.options import CommandRow
from service.ops.commands import (
    agents,
    backup,
    compact,
    countries,
    doctor,
    erase,
    publish,
    rebuild,
    reclassify,
    retain,
    status,
    verify,
    zone,
)

COMMANDS: Final = {
    "agents": agents.app,
    "backup": CommandRow(backup.backup),
    "compact": CommandRow(compact.compact),
    "countries": CommandRow(countries.countries),
    "doctor": CommandRow(doctor.doctor),
    "erase": CommandRow(erase.erase),
    "publish": CommandRow(publish.publish),
    "rebuild": CommandRow(rebuild.rebuild),
    "reclassify": CommandRow(reclassify.reclassify),
    "retain": CommandRow(retain.retain),
    "status": CommandRow(status.status),
    "verify": CommandRow(verify.verify),
    "zone": zone.app,
}
