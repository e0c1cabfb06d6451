"""Commands that pages and messages print: the real command line parses each of them, and they name the lake and the
program."""

import ast
import re
import shlex
from datetime import timedelta
from pathlib import Path

import pytest
from typer import Exit

from service.commands import PROGRAM
from service.core import program
from service.core.commands.printing import LAKE, pasteable
from service.core.pages.markup import with_code
from service.core.program import DEFAULT_LAKE, command_line, runnable
from service.core.settings import setting
from service.jobs.store import Jobs
from tests.conftest import NOW
from tests.service.jobs.findings import broken
from tests.support.control import open_store
from tests.support.visits import land, visit

PAGES = ("", "ai", "agents", "people", "times", "links", "paths", "domains", "left-out", "invented-links", "jobs",
         "robots?block=OpenAI:trained", "run/time-series", "run/paths?f_agent=a%27b", "settings/api-keys",
         "settings/shares", "settings/agent-hooks", "settings/storage", "settings/cache")  # fmt: skip


def printed(page):
    """Yield the words of each command on a page, without the program."""
    for code in page.all("code"):
        line = code.text.partition(" > ")[0].partition(" && ")[0]
        if line.startswith(("traffic ", "uv run traffic ")):
            yield shlex.split(line.partition("traffic ")[2])


def parsed(words):
    """Return the context in which the command line would run a command with these words. Raises UsageError."""
    context = PROGRAM.make_context("traffic", [*words])
    command = PROGRAM
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        _, command, rest = command.resolve_command(context, rest)
        context = command.make_context(command.name, rest, parent=context)
    return context


@pytest.fixture
def texts(lake, browsing):
    """The pages of an organization with visits and a job, as an editor and as a viewer, and two pages of a new
    organization."""
    crawled = {"bot_category": "ai_training", "agent_kind": "training", "agent": "GPTBot", "operator": "OpenAI",
               "ai_source": "ChatGPT", "confidence": "high"}  # fmt: skip
    land(lake, "acme", [visit(visited_at=NOW.replace(tzinfo=None) - timedelta(days=1), **crawled)])
    with open_store(Jobs, lake) as jobs:
        jobs.upsert(broken(), NOW)
        (job,) = jobs.of("acme")
    found = []
    for organization, role, pages in (
        ("acme", "editor", (*PAGES, f"jobs/{job.id}")), ("acme", "viewer", PAGES), ("new", "editor", ("", "jobs"))
    ):  # fmt: skip
        with browsing(lake, organization, role=role) as browser:
            found += [browser.read(page) for page in pages]
    return found


ROOT = Path(__file__).parents[3]
NAMES = {
    "backup", "erase", "exclude add", "follow", "import", "jobs list", "keys", "query", "zone set",
}  # fmt: skip
"""The commands that texts name without arguments."""


def literals(source):
    """Yield the text of each string in a module except docstrings, with X for each value in it."""
    tree = ast.parse(source)
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    parts |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value


def test_every_command_in_a_message_is_valid():
    sources = [path.read_text() for room in ("data", "queries", "service") for path in (ROOT / room).rglob("*.py")]
    texts = [text for source in sources for text in literals(source)]
    commands = {command for text in texts for command in re.findall("`traffic ([^`]+)`", text)}
    assert len(commands) > 30
    for command in commands - NAMES:
        words = shlex.split(command.replace("--org X X X", "--org X --domain X"))  # a placeholder for days and domains
        words = shlex.split(command_line(Path("/srv/a"), *words).partition("traffic ")[2])
        try:
            parsed(words)
        except Exit:  # raised by --help
            assert words[0] == "--help"


def test_every_printed_command_is_valid(texts, lake):
    commands = {tuple(words) for page in texts for words in printed(page)}
    expected = {"query", "views", "import", "follow", "sign-in", "jobs", "robots", "demo"}
    assert expected - {words[0] for words in commands} == set()
    for words in commands:
        context = parsed(words)
        if words[0] != "demo":
            assert str(context.params["lake"]) == str(lake.root.absolute()), context.params


def test_the_default_lake_is_not_named(monkeypatch):
    assert command_line(Path(setting("lake").default), "status") == "uv run traffic status"
    monkeypatch.setattr(program, "_PROGRAM", ("traffic",))
    assert command_line(Path("/srv/a b"), "query", "x'y") == """traffic query 'x'"'"'y' --lake '/srv/a b'"""


@pytest.mark.parametrize("text", ["traffic", "trafficking x", "traffic 'a", "GET /jobs", "traffic status --lake x"])
def test_text_that_is_not_a_bare_command_is_unchanged(text):
    assert runnable(lambda *_: "changed", text) == text
    assert with_code(f"Run `{text}` now.") == f"Run <code>{text}</code> now.".replace("'", "&#39;")


def test_a_message_names_the_program_and_the_lake():
    token = LAKE.set(Path("/srv/a b"))
    said = pasteable("Run `traffic verify`, not `GET /x`.")
    LAKE.reset(token)
    assert said == "Run `uv run traffic verify --lake '/srv/a b'`, not `GET /x`."


def test_an_installed_program_is_named_without_uv(monkeypatch):
    monkeypatch.setattr(program, "_PROGRAM", ("traffic",))
    assert command_line(DEFAULT_LAKE, "verify") == "traffic verify"


@pytest.mark.parametrize("command", ["demo", "agents release a.toml", "formats explain a.log"])
def test_a_command_without_a_lake_names_none(command):
    assert command_line(Path("/srv/a"), *command.split()) == f"uv run traffic {command}"
