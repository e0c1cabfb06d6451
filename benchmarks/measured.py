"""Runs a program, and prints its resource usage as JSON, with the lines of its standard error and the time of each.

The first argument is a string to wait for: once the program writes a line that contains this string, it is killed. If
the argument is empty, the program runs to its end. This needs a separate process, since Linux attributes the parent's
memory to the program, and the process that runs all cases grows to gigabytes.
"""

import json
import os
import subprocess
import sys
import time

if __name__ == "__main__":
    begun = time.perf_counter()
    until, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    lines, is_killed = list[tuple[float, str]](), False
    for line in process.stderr:
        lines.append((time.perf_counter() - begun, line))
        if until and until in line:
            is_killed = True
            process.kill()
            break
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if not is_killed and (until or process.returncode):
        sys.exit(f"{' '.join(command)} ended with {process.returncode}: {''.join(line for _, line in lines)}")
    ran = {
        "seconds": time.perf_counter() - begun,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss / 1000,
        "lines": lines,
    }
    print(json.dumps(ran))
