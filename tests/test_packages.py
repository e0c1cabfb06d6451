"""Packages that texts tell people to install: only our dependencies, since anyone could register any other name."""

import re
import tomllib
from functools import cache

import pytest

from tests.support.docs import REQUIREMENTS
from tests.support.forks import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PINS = {pin.partition("==")[0] for pin in PROJECT["tool"]["uv"]["constraint-dependencies"]}
EXTRAS = PROJECT["project"]["optional-dependencies"]
FOLDERS = ("data", "queries", "service", "tests", "benchmarks", ".ci")
SUFFIXES = (
    *("", ".cfg", ".conf", ".css", ".html", ".js", ".json", ".md", ".mjs", ".py", ".service", ".sh", ".sql", ".svg"),
    *(".toml", ".txt", ".yaml", ".yml"),
)
INSTALL = re.compile(r"\b(?:(?:pip3?|pipx|uv tool|uv pip|npm) (?:install|i)|uv add)\s+([^`\n]+)")
RUN = re.compile(r"\b(?:uv tool run|uvx|pipx run|npx)\s+(?:--from\s+)?([^\s`]+)")
END = re.compile(r"&&|[|;\"]|\s#")
FLAGS_WITH_VALUES = ("-r", "--requirement", "-c", "--constraint", "-C", "--python")
PACKAGE = re.compile(r"'?(@?[A-Za-z][\w./-]*)(?:\[[^\]]*\])?(?:[=<>~!@].*)?")


@cache
def texts():
    """Return the content of the repository's text files, except this one, by path."""
    found = [*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))]
    kept = (path for path in found if path.is_file() and path.suffix in SUFFIXES and path.name != "test_packages.py")
    return {str(path.relative_to(ROOT)): path.read_text("utf-8", errors="replace") for path in kept}


def packages(text):
    """Return the names of the packages that the commands in a text would install."""
    named = list(RUN.findall(text))
    for command in INSTALL.findall(text):
        words = iter(END.split(command)[0].split())
        for word in words:
            if word in FLAGS_WITH_VALUES:
                next(words, None)
            else:
                named.append(word)
    return {found[1].lower().replace("_", "-") for word in named if (found := PACKAGE.match(word))}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pip install uv && uv run traffic demo", {"uv"}),
        ("run `pip install 'traffic-analytics[publish]'`.", {"traffic-analytics"}),
        ("pip3 install --upgrade Some_Package==1.0 other>=2 # comment", {"some-package", "other"}),
        ("pip install --require-hashes -r traffic-requirements.txt", set()),
        ("pip install --no-deps --no-build-isolation .", set()),
        ("uv tool run --from pysail==0.7.2 sail server", {"pysail"}),
        ("npm install -C /tmp/map world-atlas@2.0.2 @scope/name@1", {"world-atlas", "@scope/name"}),
    ],
)
def test_the_packages_that_a_command_installs_are_found(text, names):
    assert packages(text) == names


def test_install_commands_name_only_our_dependencies():
    loaded = re.findall(r'load(?:\.resolve)?\("(@?[\w-]+)', texts()["service/core/pages/make_map.mjs"])
    ours = PINS | {*loaded, "uv"}
    assert {path: strange for path, text in texts().items() if (strange := packages(text) - ours)} == {}


def test_requirements_files_named_in_documents_or_code_exist():
    named = {name for text in texts().values() for name in re.findall(r"traffic-requirements[\w-]*\.txt", text)}
    assert [name for name in named if not (ROOT / name).is_file()] == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_has_exact_versions_with_hashes(extra):
    text = REQUIREMENTS.with_name(f"traffic-requirements-{extra}.txt").read_text("utf-8")
    packages_with_hashes = re.findall(
        r"^([\w.-]+)==\S+(?: ;.*)? \\\n(?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+", text, re.MULTILINE
    )
    assert text.count("==") == len(packages_with_hashes)
    assert {re.match(r"[\w-]+", one)[0] for one in EXTRAS[extra]} <= {*packages_with_hashes} <= PINS
