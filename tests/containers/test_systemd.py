"""The units under a real systemd, installed by the README's commands: a server, and the follower of a log."""

import json
import re

import pytest

from tests.containers.documented import becomes, commands_under, total

UNITS = "traffic.service traffic-follow@acme.service"
MAX_EXPOSURE = 20  # out of 100; systemd-analyze prints it as 2.0 of 10
LOG = "/var/log/nginx/links.json"


@pytest.fixture(scope="module")
def output(machine):
    """The output of the README's commands, executed in the repository with nginx's log as Debian creates it."""
    machine(f"install -d -o www-data -g adm -m 750 /var/log/nginx; install -o www-data -g adm -m 640 /dev/null {LOG}")
    return machine(f"cd /sources; export PATH=/opt/traffic/bin:$PATH; {commands_under('systemd')}")


@pytest.fixture(scope="module")
def units(machine, output):
    """The system in which the units run. An API key makes the organization known before its first visit."""
    becomes(lambda: states(machine), ["active", "active"])
    machine("sudo -u traffic /opt/traffic/bin/traffic keys create --org acme --name tests --lake /var/lib/traffic")
    return machine


def states(machine):
    return machine(f"systemctl is-active {UNITS} || true").split()


def counted(machine):
    """Return the number of visits that a command counts."""
    query = "/opt/traffic/bin/traffic query traffic-overview --org acme --format json --lake /var/lib/traffic"
    return total(machine(f"sudo -u traffic {query}"))


def click(machine):
    """Write a line as nginx does with the documented log format."""
    visit = {"remote_addr": "203.0.113.7", "request": "GET /launch HTTP/1.1", "status": "302", "http_referer": ""}
    visit |= {"http_user_agent": "GPTBot/1.2", "host": "go.example.com"}
    line = json.dumps(visit)[1:]
    machine(f"""echo '{{"time_iso8601": "'$(date --iso-8601=seconds)'", {line}' >> {LOG}""")


def test_the_documented_commands_start_both_units(units, output):
    assert re.search(r"^http://127\.0\.0\.1:8000/app/enter\?code=\S+$", output, re.MULTILINE)
    assert units(f"systemctl is-enabled {UNITS}").split() == ["enabled", "enabled"]


def test_lines_of_a_log_for_administrators_are_counted(units):
    before = counted(units)
    click(units)
    becomes(lambda: counted(units), before + 1)


def test_only_the_service_user_can_read_the_lake(units):
    assert units("stat --format '%U %a' /var/lib/traffic").split() == ["traffic", "750"]


def test_the_exposure_of_the_running_units_is_low(units):
    units(f"systemd-analyze security --threshold={MAX_EXPOSURE} --no-pager {UNITS} >/dev/null")


def test_units_killed_again_and_again_start_again(units):
    before = counted(units)
    for _ in range(7):
        units(f"systemctl kill --signal=KILL {UNITS} || true; sleep 1")
    click(units)
    becomes(lambda: states(units), ["active", "active"])
    becomes(lambda: counted(units), before + 1)


def test_a_follower_whose_log_is_forbidden_keeps_trying(units):
    settings = r"LOG=/root/links.json\nORGANIZATION=acme\n"
    units(f"touch /root/links.json; printf '{settings}' > /etc/traffic/follow-other.env")
    units("systemctl start traffic-follow@other; sleep 15")
    assert "Permission denied: /root/links.json" in units("journalctl --no-pager --unit traffic-follow@other")
    assert units("systemctl is-active traffic-follow@other || true").strip() in {"activating", "active"}
    units("systemctl stop traffic-follow@other")


def test_both_units_can_create_the_lake_at_the_same_time(units):
    units(f"systemctl stop {UNITS}; rm -r /var/lib/traffic; systemctl start --no-block {UNITS}; sleep 5")
    assert states(units) == ["active", "active"]
    assert units(f"systemctl show --property NRestarts --value {UNITS}").split() == ["0", "0"]


def test_stopped_units_end_by_themselves(units):
    units(f"systemctl stop {UNITS}")
    assert set(units(f"systemctl show --property Result --value {UNITS}").split()) == {"success"}
