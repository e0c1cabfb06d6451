"""The documents are true: generated parts are up to date, commands run, link targets and settings exist."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

from data.logs.formats import FORMATS
from queries import CATALOG, PARAMETERS
from service.commands import PROGRAM, app, main
from service.core.settings import SETTINGS
from service.demo.sample import Sample
from tests.support.docs import BENCHMARKS, BLOCKS, DOCUMENTS, FLOORS, README, REQUIREMENTS, ROOMS, ROOT, generated

TEXTS = {path: path.read_text("utf-8") for path in DOCUMENTS}
FLOOR_OF_ROOM = {room: floor for room in ROOMS for floor in FLOORS if room.is_relative_to(floor.parent)}
MAX_README_BYTES = 9_000
WRITTEN_BY_A_PROGRAM = {ROOT / "benchmarks/figures.md"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DEPENDENCIES, PINS = PROJECT["project"]["dependencies"], PROJECT["tool"]["uv"]["constraint-dependencies"]


def name_of(path):
    return str(path.relative_to(ROOT))


def shell_lines(text):
    """Return the commands in the shell blocks of a document; a backslash continues a command."""
    blocks = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    return [line for line in blocks.replace("\\\n", " ").splitlines() if line.strip()]


def without_code(text):
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)


COMMANDS = {path: shell_lines(text) for path, text in TEXTS.items()}
SHOWN = sorted({line for lines in COMMANDS.values() for line in lines})


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_the_generated_parts_of_a_document_are_up_to_date(path):
    assert generated(TEXTS[path]) == TEXTS[path], "run: uv run python -m tests.support.docs"


def test_every_document_is_checked():
    folders = [ROOT / name for name in ("data", "queries", "service", "tests", "benchmarks")]
    found = {*ROOT.glob("*.md"), *(path for folder in folders for path in folder.rglob("*.md"))}
    assert found == {*DOCUMENTS} | WRITTEN_BY_A_PROGRAM


def test_every_generated_block_is_checked():
    begun = [name for text in TEXTS.values() for name in re.findall(r"<!-- (\w+): ", text)]
    assert sorted(begun) == sorted(BLOCKS)


def test_the_readme_stays_short():
    assert len(TEXTS[README].encode()) <= MAX_README_BYTES


@cache
def manual_of(name):
    """Return the text of all documents about a floor."""
    floor = ROOT / name / "README.md"
    return "".join(TEXTS[path] for path in (floor, *(room for room in ROOMS if FLOOR_OF_ROOM[room] == floor)))


def test_every_endpoint_is_documented():
    assert [entry.name for entry in CATALOG if f"| `{entry.name}` |" not in manual_of("queries")] == []


def test_every_setting_is_documented():
    assert [setting.variable for setting in SETTINGS if f"`{setting.variable}`" not in manual_of("service")] == []


def test_every_log_format_is_documented():
    assert [name for name in FORMATS if f"`{name}`" not in manual_of("data")] == []


def test_every_table_of_rules_is_documented():
    tables = [path.name for path in (ROOT / "data/rules").glob("*.toml")]
    assert tables
    assert [name for name in tables if f"({name})" not in manual_of("data")] == []


SAID = "".join(TEXTS.values())


@pytest.fixture(scope="module")
def code():
    """The service's code."""
    return "".join(path.read_text("utf-8") for path in (ROOT / "service").rglob("*.py"))


def test_settings_named_in_documents_and_code_exist(code):
    variables = {setting.variable for setting in SETTINGS} | {"TRAFFIC_TYPES"}  # which is a table in the program
    variables |= {"TRAFFIC_FAULTS", "TRAFFIC_TESTS", "TRAFFIC_PICTURES"}
    assert {*re.findall(r"\bTRAFFIC_[A-Z_]+[A-Z]\b", SAID + code)} - variables == set()


def test_metrics_named_in_documents_exist(code):
    metrics = {*re.findall(r"`(traffic_\w+?)(?:_total)?`", SAID)} - PARAMETERS.keys()
    assert metrics
    assert metrics - {*re.findall(r'"(traffic_[a-z_]+)",\s+"[A-Z]', code)} == set()


def test_commands_named_in_documents_exist():
    assert {*re.findall(r"`(?:uv run )?traffic ([a-z][a-z-]*)", SAID)} - PROGRAM.commands.keys() == set()


@pytest.mark.parametrize("line", [line for line in SHOWN if "traffic " in line])
def test_a_documented_command_and_its_flags_exist(line):
    """The program has the command, and its help lists each flag."""
    name, *words = shlex.split(re.split(r"(?<![\w-])traffic (?=[a-z])", line)[-1].partition(" > ")[0], comments=True)
    subcommands = getattr(PROGRAM.commands[name], "commands", {})
    shown = help_of_command(name, *[word for word in words[:1] if word in subcommands])
    assert all(word.partition("=")[0] in shown for word in words if word.startswith("--"))


@cache
def help_of_command(*words):
    run = CliRunner().invoke(app, [*words, "--help"])
    assert run.exit_code == 0
    return run.output


def test_documented_flags_of_python_programs_exist():
    programs = {}
    for line in [line for line in SHOWN if " python -m " in line]:
        program, *words = shlex.split(line.partition(" python -m ")[2])
        programs.setdefault(program, set()).update(word for word in words if word.startswith("--"))
    assert programs
    for program, flags in ((program, flags) for program, flags in programs.items() if flags):
        command = [sys.executable, "-m", program, "--help"]
        told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert [flag for flag in flags if flag not in told] == [], program


NOT_RUN = (
    "venv", "pip install", "--engine", "uvx", "docker", "sudo", "SPARK_HOME", "TRAFFIC_ENGINE", "AWS_", "--extra",
    "traffic demo", "traffic serve", "traffic follow", "traffic agents refresh", "pytest", "python -m", "curl",
)  # fmt: skip
"""Parts of commands that do not end, need the network or a server, or take a long time; other tests run these."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A folder with the files that the documents mention, and a lake where commands find it by default."""
    folder = tmp_path_factory.mktemp("workshop")
    (folder / "queries").symlink_to(ROOT / "queries")
    (folder / "backups").mkdir()
    Sample(400, datetime.now(UTC).date(), days=4, links=20).write(folder / "access.log")
    (folder / "links.csv").write_text("short_code,target_url\nlaunch,https://example.com/launch\n")
    (folder / "slugs.csv").write_text("Slug,Long URL,Host\nlaunch,https://example.com/launch,go.example.com\n")
    (folder / "shlink.json").write_text('{"shortUrls": {"data": []}}')
    said = TEXTS[ROOT / "queries/README.md"]
    question = re.search(r"^-- my-own-question\.sql:.*?(?=^```)", said, re.DOTALL | re.MULTILINE)
    (folder / "my-own-question.sql").write_text(question[0])
    (folder / "visits.csv").write_text("ts,client,url\n2026-11-20T10:00:00Z,203.0.113.7,https://go.example.com/a\n")
    line = '203.0.113.7 [20/Nov/2026:10:00:00 +0000] "GET /launch HTTP/1.1" 302 "curl/8.5"\n'
    (folder / "custom.log").write_text(line)
    captured = '2/2/0/0/0 0/0 {curl/8.5|1|go.example|} "GET /launch HTTP/1.1"'
    (folder / "haproxy.log").write_text(
        f"203.0.113.7:51324 [20/Nov/2026:10:00:00.000] web links/app1 0/0/1/8/9 302 5 - - ---- {captured}\n"
    )
    (folder / "requests.jsonl").write_text('{"user_agent": "GPTBot/1.2"}\n')
    in_folder("traffic import access.log --org acme", folder)
    return folder


def in_folder(command, folder):
    """Run a command in a shell in the folder, as a document shows it."""
    home = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(folder)}
    how = {"cwd": folder, "env": home, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(["sh", "-c", command], check=False, **how)


def commands_to_run():
    """Return each command in the documents once, in order, with paths in the folder instead of paths on the machine."""
    lines = dict.fromkeys(line for path in DOCUMENTS for line in COMMANDS[path] if not line.startswith("apt-get"))
    runnable = [line for line in lines if not any(part in line for part in NOT_RUN)]
    local = {"uv run ": "", "/var/log/nginx/": "", "/backups/": "backups/"}
    return [re.sub("|".join(local), lambda part: local[part[0]], line) for line in runnable]


@pytest.fixture
def typed(workshop, monkeypatch, capsysbinary):
    """Run a command line in the workshop: `traffic` in this process, anything else in a shell."""
    monkeypatch.chdir(workshop)
    for name in [name for name in os.environ if name.startswith("TRAFFIC_")]:
        monkeypatch.delenv(name)
    for module in ("erasure", "retention"):  # no other program reads this lake
        monkeypatch.setattr(f"data.tasks.{module}.GRACE", timedelta(0))

    def found_as(word):
        return map(str, Path().glob(word)) if "*" in word else [word]

    def typed(line):
        command, _, target = line.partition(" > ")
        words = [name for word in shlex.split(command) for name in found_as(word)]
        if words[0] != "traffic":
            run = in_folder(line, workshop)
            return run.returncode, run.stderr
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsysbinary.readouterr()
        if target:
            Path(target).write_bytes(out)
        return end.value.code, err.decode()

    return typed


def test_the_commands_in_the_documents_run_in_order(workshop, typed):
    for line in commands_to_run():
        if line.startswith("cp -a"):  # restoring requires that the damaged lake is moved away
            (workshop / "data/lake").rename(workshop / "damaged")
        code, err = typed(line)
        assert (code, line) == (0, line), err


def test_documented_commands_of_the_duckdb_shell_print_rows(workshop):
    in_folder("traffic views --org acme > acme.sql", workshop)
    said = "".join(TEXTS[path] for path in (README, ROOT / "queries/README.md"))
    for line in {*re.findall(r"`(\.read [^`]+|DESCRIBE [^`]+|SHOW TABLES)`", said)}:
        run = in_folder(f"echo '{line}' | duckdb -bail -init acme.sql", workshop)
        assert run.returncode == 0, run.stderr
        assert run.stdout.strip()


def test_every_dependency_has_a_comment_with_its_reason():
    groups = [DEPENDENCIES, *PROJECT["dependency-groups"].values()]
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    reasons = dict(re.findall(r'"([^"\n]+)"[\],]+ +# (\S.*)$', text, re.MULTILINE))
    assert [wanted for group in groups for wanted in group if not reasons.get(wanted)] == []


_, *LINES = REQUIREMENTS.read_text("utf-8").splitlines()
LISTED = [line.removesuffix(" \\") for line in LINES if not line.startswith(" ")]
"""The packages in the file that pip reads, each with its version; the lines between contain their hashes."""


def test_every_pin_is_an_exact_version():
    assert PINS
    assert all(re.match(r"[\w.-]+==[\w.!+]+( ;.*)?$", pin) for pin in PINS)


def test_every_dependency_is_pinned():
    assert {re.match(r"[\w-]+", line)[0].lower() for line in DEPENDENCIES} <= {pin.partition("==")[0] for pin in PINS}


def test_requirements_have_the_pinned_versions():
    assert {line.partition(" ")[0] for line in LISTED} <= {pin.partition(" ")[0] for pin in PINS}


def test_requirements_have_every_dependency_and_its_build_tools():
    wanted = [*DEPENDENCIES, *PROJECT["build-system"]["requires"]]
    names = {line.partition("==")[0] for line in LISTED}
    assert {re.match(r"[\w-]+", one)[0].lower().replace("_", "-") for one in wanted} <= names


def test_build_tools_are_a_dependency_group():
    assert PROJECT["dependency-groups"]["build"] == PROJECT["build-system"]["requires"]


def test_requirements_have_hashes_but_no_index_address():
    of_a_hash = re.compile(r" {4}--hash=sha256:[0-9a-f]{64}( \\)?")
    assert all(of_a_hash.fullmatch(line) for line in LINES if line.startswith(" "))
    assert all(next_line.startswith(" ") for line, next_line in pairwise([*LINES, ""]) if "==" in line)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_targets_of_links_and_paths_in_a_document_exist(path):
    """The files and headings that it links to exist, and so do the paths that it names."""
    lost = []
    for target in re.findall(r"\]\(([^)]+)\)", without_code(TEXTS[path])):
        if "://" in target:
            continue
        file, _, anchor = unquote(target).partition("#")
        found = (path.parent / file).resolve() if file else path
        if not found.exists() or (anchor and anchor not in anchors_of(found)):
            lost.append(target)
    named = re.findall(r"`((?:data|queries|service|tests|benchmarks)/[\w./-]+)`", TEXTS[path])
    assert lost + [name for name in named if name not in NOT_OURS and not (ROOT / name).exists()] == []


def anchors_of(path):
    """Return the anchors of a document's headings, as GitHub and GitLab make them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


NOT_OURS = {"data/lake", "benchmarks/data"}
"""Folders that exist only after the program has run."""


@pytest.mark.parametrize("path", [*FLOORS, BENCHMARKS], ids=name_of)
def test_the_readme_links_to_each_floor(path):
    assert f"]({name_of(path)})" in TEXTS[README]


@pytest.mark.parametrize("path", [*FLOORS, BENCHMARKS], ids=name_of)
def test_each_floor_links_back_to_the_readme(path):
    assert "](../README.md)" in TEXTS[path]


@pytest.mark.parametrize("path", ROOMS, ids=name_of)
def test_each_room_and_its_floor_link_to_each_other(path):
    """A room's document links to the README next to it, or to its floor's README."""
    above = path.parent / "README.md"
    if path == above or above not in TEXTS:
        above = FLOOR_OF_ROOM[path]
    assert f"]({path.relative_to(above.parent)})" in TEXTS[above]
    assert f"]({'../' * (len(path.parent.parts) - len(above.parent.parts))}{above.name})" in TEXTS[path]
