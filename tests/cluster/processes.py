"""Starts and stops the processes of a real cluster on loopback: Apache Spark with two workers, and Sail.

Each process has its own process group, and is ready once its log says so.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

LOOPBACK = "127.0.0.1"
READY_SECONDS = 300
"""Time after which a process that is not ready has failed to start; starting usually takes 3 to 8 seconds."""


class Process:
    """A program in a separate process group, with its output in a file."""

    def __init__(self, log, command, ready, env):
        """Start the program, and wait until its log matches `ready`; the match is kept."""
        self.log = log
        with log.open("ab") as output:
            begin = output.tell()
            self.popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, cwd=log.parent,
                env={**os.environ, **env},
            )  # fmt: skip
        self.match = self._wait(re.compile(ready), begin)

    def _wait(self, ready, begin):
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            text = self.log.read_bytes()[begin:].decode(errors="replace")
            if match := ready.search(text):
                return match
            if self.popen.poll() is not None:
                break
            time.sleep(0.05)
        self.stop()
        raise AssertionError(f"{self.log.name} is not ready:\n{text[-4_000:]}")

    @property
    def pid(self):
        return self.popen.pid

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self):
        """End the process and its children, even if they are stopped (SIGSTOP)."""
        self.signal(signal.SIGKILL)
        self.popen.wait()


FOR_SMALL_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ui.explainMode": "simple",
}
"""Options that avoid compiling and describing each query, which takes longer than counting the tests' visits."""
JAVA_FOR_SMALL_DATA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Java options for processes that run for only a few minutes, and outnumber the cores."""


class Spark:
    """Apache Spark: a standalone master, workers with one core each, and a Connect server, all on loopback."""

    def __init__(self, folder, workers=2, options=FOR_SMALL_DATA, java_options=JAVA_FOR_SMALL_DATA):
        self._folder = folder
        self._options = options
        self._home = Path(find_spec("pyspark").origin).parent
        self._env = {
            "SPARK_HOME": str(self._home), "SPARK_LOCAL_IP": LOOPBACK, "SPARK_LOCAL_DIRS": str(folder / "local"),
            "JAVA_TOOL_OPTIONS": java_options,
        }  # fmt: skip
        self._running = []
        self.port = 0
        try:
            self._start_all(workers)
        except BaseException:
            self.stop()
            raise

    def _start_all(self, workers):
        at_free_ports = ["--host", LOOPBACK, "--port", "0", "--webui-port", "0"]
        master = ["org.apache.spark.deploy.master.Master", *at_free_ports]
        self._url = self._start("master", master, r"Starting Spark master at (spark://\S+)").match[1]

        def start_worker(number):
            worker = [
                "org.apache.spark.deploy.worker.Worker", *at_free_ports, "--cores", "1", "--memory", "1g",
                "--work-dir", str(self._folder / f"work{number}"), self._url,
            ]  # fmt: skip
            return self._start(f"worker{number}", worker, "Successfully registered with master")

        with ThreadPoolExecutor() as threads:
            starting = threads.map(start_worker, range(workers))
            self.start_connect()
            self.workers = list(starting)

    def start_connect(self):
        """Start the Connect server, on its earlier port if it ran before."""
        options = {
            "spark.connect.grpc.binding.address": LOOPBACK, "spark.connect.grpc.binding.port": self.port,
            "spark.driver.host": LOOPBACK, "spark.driver.memory": "768m", "spark.executor.memory": "768m",
            "spark.executor.cores": 1, "spark.ui.enabled": "false", "spark.sql.shuffle.partitions": 2,
            "spark.sql.warehouse.dir": self._folder / "warehouse", "spark.port.maxRetries": 0 if self.port else 16,
            **self._options,
        }  # fmt: skip
        set_options = [part for name, value in options.items() for part in ("--conf", f"{name}={value}")]
        command = [
            "org.apache.spark.deploy.SparkSubmit",
            "--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", self._url, *set_options,
        ]  # fmt: skip
        self.connect = self._start("connect", command, r"Spark Connect server started at: \S*?:(\d+)")
        self.port = int(self.connect.match[1])

    @property
    def address(self):
        return f"sc://{LOOPBACK}:{self.port}"

    def executors(self):
        """Return the process ids of the executors."""
        groups = {worker.pid for worker in self.workers}
        return [pid for pid, group, command in processes() if group in groups and "CoarseGrainedExecutor" in command]

    @contextlib.contextmanager
    def stopped_executors(self):
        """Suspend the executors while in this context: queries do not end unless they are cancelled."""
        wait_until(lambda: len(self.executors()) == len(self.workers))
        executors = self.executors()
        try:
            for executor in executors:
                os.kill(executor, signal.SIGSTOP)
            yield
        finally:
            for executor in executors:
                os.kill(executor, signal.SIGCONT)

    def tasks(self):
        """Return the number of tasks started so far."""
        return self._logged("Starting task")

    def interrupted(self):
        """Return the number of queries interrupted so far."""
        return self._logged("[OPERATION_CANCELED]")

    def _logged(self, text):
        return self.connect.log.read_text(errors="replace").count(text)

    def stop(self):
        for process in reversed(self._running):
            process.stop()

    def _start(self, name, command, ready):
        spark_class = self._home / "bin" / "spark-class"
        process = Process(self._folder / f"{name}.log", [spark_class, *command], ready, self._env)
        self._running.append(process)
        return process


class Sail:
    """Sail: a driver and two workers in one process, behind the same protocol."""

    def __init__(self, folder):
        # Sail imports pyspark if it is installed; with Apache Spark's own package, it then creates no session.
        program = "import sys; sys.modules['pyspark'] = None; from pysail.cli import main; main()"
        command = [sys.executable, "-c", program, "spark", "server", "--ip", LOOPBACK, "--port", "0"]
        env = {
            "SAIL_MODE": "local-cluster", "SAIL_CLUSTER__WORKER_INITIAL_COUNT": "2", "RUST_LOG": "info", "NO_COLOR": "1"
        }  # fmt: skip
        self.process = Process(folder / "sail.log", command, rf"{re.escape(LOOPBACK)}:([1-9]\d*)", env)
        self.port = int(self.process.match[1])

    @property
    def address(self):
        return f"sc://{LOOPBACK}:{self.port}"

    def stop(self):
        self.process.stop()


def processes():
    """Return the id, the process group and the command line of every process."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            group = int((folder / "stat").read_text().rpartition(")")[2].split()[2])
            found.append((int(folder.name), group, (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()))
    return found


def wait_until(holds, seconds=300):
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.02)
