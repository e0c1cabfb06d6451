"""The start of the program, beside packages that others have installed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from service.program import UNUSED
from tests.support.forks import PROGRAM
from tests.support.tables import examples


@pytest.fixture
def run(tmp_path):
    """Runs a command with UNUSED on its path, which leave a file when they are imported."""
    for package in UNUSED:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(
            f"from pathlib import Path\nPath({str(tmp_path / 'imported')!r}).touch()\n"
        )
    environ = os.environ | {"PYTHONPATH": str(tmp_path)}

    def run(*command):
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        return done.stdout, done.stderr, (tmp_path / "imported").exists()

    return run


def test_commands_import_no_package_that_they_do_not_use(run, tmp_path):
    log = tmp_path / "access.log"
    log.write_text('203.0.113.1 - - [04/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n')
    lake = ["--org", "acme", "--lake", tmp_path / "lake"]
    _, message, has_imported = run(PROGRAM, "import", log, "--domain", "go.example", *lake)
    assert ("1 visit imported" in message, has_imported) == (True, False)
    for output in ("table", "csv"):
        query = ["query", "traffic-overview", "--start-date", "2026-03-04", "--end-date", "2026-03-04"]
        answer, message, has_imported = run(PROGRAM, *query, "--format", output, *lake)
        assert ("total" in answer, message, has_imported) == (True, "", False)
    assert run(sys.executable, "-c", "import pyarrow; pyarrow.array([1])")[2]  # as every program would


def test_an_import_loads_no_library_of_consoles_downloads_and_countries_where_nobody_asks(tmp_path):
    log = tmp_path / "access.log"
    log.write_text('203.0.113.1 - - [04/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n')
    command = ["traffic", "import", log, "--org", "acme", "--domain", "go.example", "--lake", tmp_path / "lake"]
    loaded = "print([name for name in ('rich', 'urllib.request', 'maxminddb') if name in sys.modules])"
    program = f"import service.program, sys\ntry: service.program.main()\nexcept SystemExit: {loaded}"
    done = subprocess.run([sys.executable, "-c", program, *command[1:]], capture_output=True, text=True, check=False)
    assert (done.stdout, "1 visit imported" in done.stderr) == ("[]\n", True)


def test_ctrl_c_while_a_command_starts_ends_it_without_a_traceback():
    program = (
        "import os, signal, sys, service.program\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # which tests in the background ignore
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'service.commands': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "service.program.main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_end_nothing_in_a_traceback(tmp_path, closed):
    log = tmp_path / "access.log"
    log.write_text('203.0.113.1 - - [04/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n')
    lake = f"--org acme --lake {tmp_path / 'lake'}"
    for command, code in (
        (f"import {log} --domain go.example {lake}", 0),
        (f"query traffic-overview {lake}", int(">&-" in closed.replace("2>&-", ""))),  # its answer is lost
    ):
        done = subprocess.run(f"{PROGRAM} {command} {closed}", shell=True, capture_output=True, text=True, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), done


def test_pyspark_may_import_them(run, tmp_path):
    (tmp_path / "pyspark.py").write_text("import numpy, pandas\n")
    program = "import service.program, sys; sys.argv = ['traffic', '--help']\n"
    run(sys.executable, "-c", f"{program}try: service.program.main()\nexcept SystemExit: import pyspark")
    assert (tmp_path / "imported").exists()


def test_garbage_is_collected_in_commands_but_not_among_what_was_imported():
    state = "lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000)"
    program = f"import gc, service.program, service.commands; service.commands.main = {state}; service.program.main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True True\n", "")


ENDING = """
import atexit, sys, threading, time
import service.program, service.commands
def run():
    atexit.register(print, "at exit")
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    {end}
service.commands.main = run
service.program.main()
"""


@pytest.fixture
def ended():
    """Ends a program by a statement; its exit code, what it printed, and its last error."""

    def ended(end, stdout=subprocess.PIPE):
        command = [sys.executable, "-c", ENDING.format(end=end)]
        environ = os.environ | {"PYTHONUNBUFFERED": ""}
        done = subprocess.run(command, env=environ, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stdout and done.stdout.split("\n"), done.stderr.strip().rpartition("\n")[2]

    return ended


@examples("end", "code", "error")
def test_a_command_ends_after_its_threads_and_what_was_registered_for_the_end(ended, end, code, error):
    assert ended(end) == (code, ["thread", "at exit", ""], error)


def test_what_cannot_be_written_at_the_end_is_reported(ended):
    with Path("/dev/full").open("w") as full:
        assert ended("sys.exit(0)", full) == (120, None, "OSError: [Errno 28] No space left on device")


def test_databases_are_closed_at_the_end_of_a_command(tmp_path):
    log = tmp_path / "access.log"
    log.write_text('203.0.113.1 - - [04/Mar/2026:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n')
    command = [PROGRAM, "import", log, "--org", "acme", "--domain", "go.example", "--lake", tmp_path / "lake"]
    subprocess.run(command, check=True, capture_output=True)
    assert sorted(path.name for path in (tmp_path / "lake").glob("*.sqlite*")) == ["manifest.sqlite", "salts.sqlite"]


def test_a_warning_is_printed_without_the_line_of_the_source_that_gave_it(run, tmp_path):
    log = tmp_path / "access.log"
    log.write_text('203.0.113.1 - - [04/Mar/2025:10:00:00 +0000] "GET /a HTTP/1.1" 302 0 "-" "GPTBot/1.2"\n')
    lake = ["--org", "acme", "--lake", tmp_path / "lake"]
    run(PROGRAM, "import", log, "--domain", "go.example", *lake)
    _, message, _ = run(PROGRAM, "robots", "plan", *lake)
    first, *rest = message.splitlines()
    assert first.startswith("acme has no visits from ")
    assert len(rest) == 1
