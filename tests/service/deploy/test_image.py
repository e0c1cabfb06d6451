"""The Dockerfile: what a linter finds, and its steps, executed in an empty folder without a container.

The Python that runs the tests is used, and uv installs from its cache what pip would install; `TRAFFIC_FAULTS=all` runs
pip itself. tests/containers builds and runs the real image.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path, PurePath

import pytest

from tests.support.docs import ROOT
from tests.support.programs import DEPLOY, accepts, checked, free_port, moved, running

LINE = '203.0.113.7 - - [01/Mar/2026:10:00:00 +0000] "GET /launch HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n'
PIP = """#!/bin/sh
exec {uv} pip install --quiet --python "${{0%pip}}python" $(echo "$@" | sed 's/install --no-cache-dir//')
"""
VENV = """#!/bin/sh
[ "$1 $2" = "-m venv" ] && {uv} venv --quiet --python {python} "$3" && cp {folder}/pip "$3/bin/pip"
"""


def instructions():
    """Return the instructions of the Dockerfile as (name, arguments)."""
    text = re.sub(r"^#.*\n", "", (DEPLOY / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def ignored(path):
    """Return whether a path in the repository is excluded from the build."""
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    return any(PurePath(path).match(line) for line in lines if not line.startswith("#"))


class Image:
    """A folder in which the Dockerfile's instructions are executed, in place of an image."""

    def __init__(self, root, tools):
        self.root, self.folder = root, root
        folders = [
            one for one in os.environ["PATH"].split(":") if not Path(one, "uv-build").exists()
        ]  # like the base image
        self.environ = {"PATH": ":".join([str(tools), *folders]), "HOME": str(root)}
        self.command, self.health, self.user = [], [], ""

    def place(self, text):
        """Return the text with the image's paths replaced by paths below the folder."""
        return moved(text, {path: f"{self.root}{path}" for path in ("/src", "/opt/traffic", "/lake")})

    def execute(self, name, rest):
        getattr(self, f"on_{name.lower()}")(rest)

    def on_from(self, rest):
        assert rest.split()[0].partition("@")[0] == "python:3.11-slim"
        self.folder = self.root

    def on_workdir(self, rest):
        self.folder = Path(self.place(rest))
        self.folder.mkdir(parents=True, exist_ok=True)

    def on_copy(self, rest):
        *sources, target = rest.split()
        if sources[0] == "--from=build":
            assert sources[1:] == [target]  # it stays in place, and the rest of the first image is deleted
            shutil.rmtree(self.root / "src")
            return
        for source in sources:
            assert not ignored(source)
            into = self.folder / target / (source if target == "./" else "")
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, into, ignore=self._ignored)
            else:
                shutil.copy(ROOT / source, into)

    @staticmethod
    def _ignored(folder, names):
        return [name for name in names if ignored(Path(folder, name).relative_to(ROOT))]

    def on_run(self, rest):
        owner = "" if os.geteuid() == 0 else " -o 10001 -g 10001"
        # the tests' interpreter may belong to a project, with variables that must not reach another project
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))}
        path = {"PATH": self.environ["PATH"]}
        command = self.place(rest).replace(owner, "")
        done = subprocess.run(
            ["sh", "-ec", command], cwd=self.folder, env=clean | path, capture_output=True, text=True, check=False
        )
        if re.search("error sending request|dns error", done.stderr, re.IGNORECASE):
            pytest.skip(f"the package index cannot be reached: {done.stderr}")
        assert done.returncode == 0, done.stderr

    def on_env(self, rest):
        for word in shlex.split(rest):
            name, _, value = word.partition("=")
            self.environ[name] = self.place(value).replace("$PATH", self.environ["PATH"])

    def on_volume(self, rest):
        assert Path(self.place(rest)).stat().st_mode & 0o777 == 0o750

    def on_expose(self, rest):
        assert rest == "8000"

    def on_healthcheck(self, rest):
        self.health = json.loads(rest.partition("CMD ")[2])

    def on_user(self, rest):
        self.user = rest

    def on_cmd(self, rest):
        self.command = json.loads(rest)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is missing; it installs the program")
    tools = tmp_path_factory.mktemp("tools")
    if os.environ.get("TRAFFIC_FAULTS") == "all":
        (tools / "python").symlink_to(sys.executable)
    else:
        for name, text in (("python", VENV), ("pip", PIP)):
            (tools / name).write_text(text.format(uv=uv, python=sys.executable, folder=tools))
            (tools / name).chmod(0o755)
    image = Image(tmp_path_factory.mktemp("image"), tools)
    for name, rest in instructions():
        image.execute(name, rest)
    return image


@pytest.fixture
def program(image, tmp_path):
    """Run the installed `traffic` in an empty folder; return its output."""

    def run(*arguments, **variables):
        environ = image.environ | {"TRAFFIC_LAKE": "lake"} | variables
        command = ["traffic", *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True).stdout

    return run


def test_the_linter_reports_nothing_in_the_dockerfile():
    linter = Path(sys.executable).parent / "hadolint"
    if not linter.exists():
        pytest.skip("hadolint is missing; uv installs it with the development group")
    assert checked(linter, DEPLOY / "Dockerfile") == ""


@pytest.mark.parametrize("path", ["data/lake", "data/lake/control.sqlite", ".git", "tests", "data/logs/__pycache__"])
def test_the_build_context_omits_lakes_tests_and_caches(path):
    assert any(map(ignored, [path, *map(str, PurePath(path).parents)]))


def test_the_dockerfile_installs_a_healthy_server(image, tell):
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", image.user)  # a number, so that checks see that it is not root
    assert not (image.root / "src").exists()
    monitor = free_port()
    health = [part.replace(image.environ["TRAFFIC_MONITOR_PORT"], str(monitor)) for part in image.health]
    assert health != image.health
    environ = image.environ | {"TRAFFIC_HOST": "127.0.0.1", "TRAFFIC_PORT": "0", "TRAFFIC_MONITOR_PORT": str(monitor)}

    def is_healthy():
        return subprocess.run(health, env=environ, stderr=subprocess.DEVNULL, check=False).returncode == 0

    assert not is_healthy()
    with running(image.command, lambda: accepts(monitor), image.root / "log", env=environ, cwd=image.folder):
        assert is_healthy()
    assert (image.root / "lake/manifest.sqlite").exists()
    size = sum(file.lstat().st_size for file in (image.root / "opt").rglob("*") if not file.is_symlink())
    tell(megabytes_beside_the_base_image=round(size / 1e6))


def test_an_installed_program_can_import_query_and_report(program, tmp_path):
    (tmp_path / "access.log").write_text(LINE)
    program("import", "access.log", "--org", "acme", "--domain", "go.example.com")
    scope = ("--org", "acme", "--start-date", "2026-03-01", "--end-date", "2026-03-01")
    assert "GPTBot,OpenAI" in program("query", "bot-traffic", *scope, "--format", "csv")
    report = program("report", *scope)
    assert report.startswith("<!doctype html>")
    assert "GPTBot" in report or "OpenAI" in report


def test_the_installed_program_prints_its_version(program):
    assert program("--version") == f"traffic {version('traffic-analytics')}\n"


def test_the_installed_program_completes_its_commands(program):
    asked = {"_TRAFFIC_COMPLETE": "complete_bash", "COMP_WORDS": "traffic que", "COMP_CWORD": "1"}  # like bash
    assert program(**asked).split() == ["query"]


def test_installed_packages_are_compatible(image):
    command = [shutil.which("uv"), "pip", "check", "--python", image.root / "opt/traffic/bin/python"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
