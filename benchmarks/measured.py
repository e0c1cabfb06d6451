"""Runs a program, and prints what it took as JSON, with each line that it wrote to its standard error and when.

A process of its own: Linux counts the memory of who starts a program as that program's, and the process of all cases
has grown to gigabytes.
"""

import json
import os
import subprocess
import sys
import time

if __name__ == "__main__":
    begun = time.perf_counter()
    process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    lines = [(time.perf_counter() - begun, line) for line in process.stderr]
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(sys.argv[1:])} ended with {process.returncode}: {''.join(line for _, line in lines)}")
    ran = {
        "seconds": time.perf_counter() - begun,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1000,
        "lines": lines,
    }
    print(json.dumps(ran))
