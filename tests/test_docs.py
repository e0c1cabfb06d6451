"""The documents are true: tables are made from the code, commands exist, every dependency has its reason."""

import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from queries import CATALOG
from service.commands import app
from service.settings import SETTINGS
from tests.docs import README, rendered

ROOT = README.parent
TEXT = README.read_text("utf-8")
PROGRAM = get_command(app)
COMMANDS = re.findall(
    r"^(?:pip install uv && )?uv run (.+)$", "\n".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)), re.MULTILINE
)


def test_the_tables_of_the_readme_are_those_of_the_code():
    assert rendered(TEXT) == TEXT, "run: uv run python -m tests.docs"


def test_every_endpoint_and_setting_is_in_the_readme():
    assert all(f"`/analytics/{entry.name}`" in TEXT for entry in CATALOG)
    assert all(setting.variable in TEXT for setting in SETTINGS)


def test_no_document_names_a_setting_that_does_not_exist():
    documents = [README, *ROOT.glob("benchmarks/*.md"), ROOT / "CHANGELOG.md", *(ROOT / "service").rglob("*.py")]
    mentioned = {
        name for path in documents for name in re.findall(r"\bTRAFFIC_[A-Z_]+[A-Z]\b", path.read_text("utf-8"))
    }
    assert mentioned - {"TRAFFIC_TYPES", "TRAFFIC_FAULTS"} <= {setting.variable for setting in SETTINGS}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_readme_is_understood(command):
    """Its program knows the command and every flag in it."""
    words = shlex.split(command.partition(" > ")[0], comments=True)
    if words[0] != "traffic":
        assert (Path(sys.executable).parent / words[0]).exists()
        return
    name, *rest = words[1:]
    subcommands = getattr(PROGRAM.commands[name], "commands", {})
    run = CliRunner().invoke(app, [name, *[word for word in rest[:1] if word in subcommands], "--help"])
    assert run.exit_code == 0
    assert all(word.partition("=")[0] in run.output for word in words if word.startswith("--"))


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def test_every_dependency_has_its_reason_in_the_readme():
    table = project()
    listed = [*table["project"]["dependencies"], *table["dependency-groups"]["dev"]]
    names = [re.match(r"[\w-]+", line)[0] for line in listed]
    reasons = TEXT[TEXT.index("## Dependencies") :]
    assert [name for name in names if name not in reasons] == []


def test_every_package_of_the_environment_has_an_exact_version():
    pins = project()["tool"]["uv"]["constraint-dependencies"]
    assert all(re.match(r"[\w.-]+==[\w.!+]+( ;.*)?$", pin) for pin in pins)
    pinned = {pin.partition("==")[0] for pin in pins}
    wanted = {re.match(r"[\w-]+", line)[0].lower() for line in project()["project"]["dependencies"]}
    assert wanted <= pinned


def test_the_changelog_has_a_line_for_this_version():
    assert f"## {project()['project']['version']}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_links_in_the_readme_lead_somewhere():
    targets = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert targets
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []
