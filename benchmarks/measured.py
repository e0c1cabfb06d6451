"""Runs a program, and prints what it took as JSON.

A process of its own: Linux counts the memory of who starts a program as that program's, and the process of all cases
has grown to gigabytes.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

if __name__ == "__main__":
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{' '.join(sys.argv[1:])} ended with {process.returncode}: {said.read()}")
    ran = {
        "seconds": time.perf_counter() - begun,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1000,
    }
    print(json.dumps(ran))
