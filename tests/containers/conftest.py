"""Fixtures for tests in real containers: a Debian system, Docker with images made from it, and systemd as its init.

The tests run as root, with Debian's packages debootstrap, docker.io, docker-compose, iproute2 and systemd-container,
and only if TRAFFIC_TESTS is "all". Neither image is downloaded: both base images are this Debian system. It has the
pinned packages as wheels, so that nothing in a container needs the network.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.containers.docker import Docker
from tests.containers.machine import Machine
from tests.support.forks import ROOT
from tests.support.programs import checked
from tests.support.web_servers import installed

RELEASE = "bookworm"
PYTHON = "3.11"  # of this release
PACKAGES = "adduser ca-certificates caddy curl dbus media-types procps python3 python3-venv sudo systemd systemd-sysv"


@pytest.fixture(scope="session", autouse=True)
def _requested():
    """Skip the tests unless all tests were requested, by root."""
    if os.environ.get("TRAFFIC_TESTS") != "all":
        pytest.skip("it takes minutes and must be root: TRAFFIC_TESTS=all uv run pytest tests/containers")
    if os.geteuid() != 0:
        pytest.skip("only root can start containers")


@pytest.fixture(scope="session")
def folder():
    """A folder on disk. Containers do not start from every file system in memory."""
    folder = Path(tempfile.mkdtemp(prefix="traffic-containers-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def sources(folder):
    """A copy of the repository's files."""
    sources = folder / "sources"
    for name in checked("git", "ls-files", "-z", cwd=ROOT).split("\0")[:-1]:
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, sources / name)
    return sources


@pytest.fixture(scope="session")
def debian(folder, sources):
    """The root folder of a Debian system with Python, Caddy, systemd and, in /wheels, the pinned packages."""
    root = folder / "debian"
    indexes = "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"
    mirrors = checked(*indexes, f"Codename: {RELEASE}").splitlines()
    if not mirrors:
        pytest.skip(f"apt-get has no source with Debian's release {RELEASE}")
    packages = f"--include={','.join(PACKAGES.split())}"
    checked(installed("debootstrap"), "--variant=minbase", packages, RELEASE, root, mirrors[0])
    wanted = ["--require-hashes", "--requirement", sources / "traffic-requirements.txt"]
    target = ["--only-binary", ":all:", "--python-version", PYTHON, "--dest", root / "wheels"]
    checked(installed("uv"), "tool", "run", "pip", "download", "--quiet", *wanted, *target)
    (root / "etc/pip.conf").write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    (root / "usr/bin/python").symlink_to("python3")
    return root


@pytest.fixture(scope="session")
def docker(folder, debian):
    """Docker's daemon, with the base images that the Dockerfile and compose.yaml name."""
    with Docker(folder / "docker") as docker:
        docker.add_image("python:3.11-slim", debian, "CMD python")
        caddy = "CMD caddy run --config /etc/caddy/Caddyfile"
        docker.add_image("caddy:2", debian, "ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data", "WORKDIR /srv", caddy)
        yield docker


@pytest.fixture(scope="session")
def machine(debian, sources):
    """The Debian system, started with systemd as its init, and a copy of the repository in /sources."""
    shutil.copytree(sources, debian / "sources")
    with Machine(debian) as machine:
        yield machine
