"""The program's start and end, in an environment with unrelated packages."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.program import UNUSED
from tests.support.forks import PROGRAM
from tests.support.tables import examples

LINE = '203.0.113.1 - - [04/Mar/2025:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n'
CAUGHT = "import service.program, sys\ntry: service.program.main()\nexcept SystemExit: "


def ended(*command, **how):
    return subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False, **{"stdout": subprocess.PIPE, **how})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Run a command with the packages in UNUSED on its path; return stdout, stderr, and whether it imported any."""
    folder = tmp_path_factory.mktemp("packages")
    for package in UNUSED:
        (folder / package).mkdir()
        (folder / package / "__init__.py").write_text(
            f"from pathlib import Path\nPath({str(folder / 'imported')!r}).touch()\n"
        )
    (folder / "pyspark.py").write_text("import numpy, pandas\n")

    def run(*command):
        (folder / "imported").unlink(missing_ok=True)
        done = ended(*command, env=os.environ | {"PYTHONPATH": str(folder)})
        return done.stdout, done.stderr, (folder / "imported").exists()

    return run


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The arguments that name a log, and those that name an organization and a lake."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "access.log").write_text(LINE)
    return [folder / "access.log", "--domain", "go.example"], ["--org", "acme", "--lake", folder / "lake"]


@pytest.fixture(scope="module")
def imported(run, words):
    """The output of an import, with the libraries for consoles, downloads and countries that it has loaded, and the
    arguments for its lake."""
    log, lake = words
    loaded = "print([name for name in ('rich', 'urllib.request', 'maxminddb') if name in sys.modules])"
    return run(sys.executable, "-c", CAUGHT + loaded, "import", *log, *lake), lake


def test_commands_import_no_unused_package(imported, run):
    (loaded, message, has_imported), lake = imported
    assert (loaded, "1 visit imported" in message, has_imported) == ("[]\n", True, False)
    assert sorted(path.name for path in lake[-1].glob("*.sqlite*")) == ["manifest.sqlite", "salts.sqlite"]  # closed
    query = ["query", "traffic-overview", "--start-date", "2025-03-04", "--end-date", "2025-03-04"]
    assert run(PROGRAM, *query, "--format", "csv", *lake)[1:] == ("", False)
    assert run(sys.executable, "-c", "import pyarrow; pyarrow.array([1])")[2]  # like every program
    assert run(sys.executable, "-c", f"{CAUGHT}import pyspark", "--help")[2]  # which imports them


def test_a_warning_is_printed_without_its_source_line(imported, run):
    _, message, has_imported = run(PROGRAM, "robots", "plan", *imported[1])
    first, *rest = message.splitlines()
    assert first.startswith("acme has no visits from ")
    assert (len(rest), has_imported) == (1, False)


def test_ctrl_c_during_startup_ends_without_a_traceback():
    program = (
        "import os, signal, sys, service.program\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored by tests in the background
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'service.commands': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "service.program.main()"
    )
    done = ended(sys.executable, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(("command", "closed", "code"), [("import", "<&- >&- 2>&-", 0), ("query", ">&-", 1)])
def test_closed_streams_cause_no_traceback(imported, words, tmp_path, command, closed, code):
    log, lake = words
    more = [*log, *lake, "--lake", tmp_path] if command == "import" else ["traffic-overview", *lake]
    line = " ".join(map(str, [PROGRAM, command, *more]))
    done = ended(f"{line} {closed}", shell=True)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done  # a lost answer is an error


def test_garbage_collection_skips_imported_modules():
    state = "lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    program = f"import gc, service.program, service.commands; service.commands.main = {state}; service.program.main()"
    done = ended(sys.executable, "-c", program)
    assert (done.stdout, done.stderr) == ("True True\n", "")


ENDING = """
import atexit, sys, threading, time, types
import service.program
def run():
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    {end}
sys.modules["service.commands"] = types.SimpleNamespace(main=run)
service.program.main()
"""


def ended_by(end, **how):
    """End a program with a statement; return its exit code, its output, and the last line of its errors."""
    done = ended(sys.executable, "-c", ENDING.format(end=end), env=os.environ | {"PYTHONUNBUFFERED": ""}, **how)
    return done.returncode, done.stdout and done.stdout.split("\n"), done.stderr.strip().rpartition("\n")[2]


@examples("end", "code", "error")
def test_a_command_ends_after_its_threads_and_exit_handlers(end, code, error):
    assert ended_by(end) == (code, ["thread", "at exit", ""], error)


def test_a_failed_write_at_exit_is_reported():
    with Path("/dev/full").open("w") as full:
        assert ended_by("sys.exit(0)", stdout=full) == (120, None, "OSError: [Errno 28] No space left on device")
