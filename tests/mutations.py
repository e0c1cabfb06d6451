"""Plant small mistakes in the product, one at a time, and list the mistakes that no test notices.

    uv run python -m tests.mutations --seed 1 --count 100 data/ingest queries

The mistakes are planted in a temporary git worktree of HEAD with a separate environment. The exit code is 1 if any
survive.

This is a separate script because neither mutmut 3.8 nor Cosmic Ray 8.7 draws random mistakes from a seed: they plant
all mistakes, 1,981 in data/store alone. mutmut changes only functions, and Cosmic Ray runs the same command for every
mistake; this script runs the nearest tests first, and the whole suite for survivors.
"""

import argparse
import ast
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from tests.support.worktrees import worktree

OPERATORS: Final = {
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
}  # fmt: skip
ALL: Final = "tests"


class Mutation(NamedTuple):
    """A mistake: the bytes of a file from `start` to `end` are replaced by `text`."""

    file: str
    line: int
    start: int
    end: int
    text: bytes

    def planted(self, source: bytes) -> bytes:
        """Return the file's content with the mistake."""
        return source[: self.start] + self.text + source[self.end :]


def mutations(file: str, source: bytes) -> list[Mutation]:
    """Return every mistake that can be planted in a file, in the order of its syntax tree; a few do not compile."""
    lines = [0, *(found.end() for found in re.finditer(b"\n", source))]

    def start(node: ast.expr) -> int:
        return lines[node.lineno - 1] + node.col_offset

    def end(node: ast.expr) -> int:
        return lines[node.end_lineno - 1] + node.end_col_offset

    def between(left: ast.expr, operator: ast.AST, right: ast.expr) -> Iterator[Mutation]:
        if type(operator) in OPERATORS:
            old, new = (word.encode() for word in OPERATORS[type(operator)])
            gap = source[end(left) : start(right)]
            if gap.count(old) == 1 and b"#" not in gap:
                yield Mutation(file, left.lineno, end(left), start(right), gap.replace(old, new))

    def of(node: ast.AST) -> Iterator[Mutation]:
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                yield from between(left, operator, right)
            case ast.BoolOp(op=operator, values=[left, right, *_]):
                yield from between(left, operator, right)
            case ast.BinOp(left=left, op=operator, right=right):
                yield from between(left, operator, right)
            case ast.UnaryOp(op=ast.Not()):
                yield Mutation(file, node.lineno, start(node), start(node) + len(b"not"), b"")
            case ast.Constant(value=bool(value)):
                yield Mutation(file, node.lineno, start(node), end(node), str(not value).encode())
            case ast.Constant(value=int(value)):
                yield Mutation(file, node.lineno, start(node), end(node), str(value + 1).encode())
            case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
                yield Mutation(file, value.lineno, start(value), end(value), b"None")
        if isinstance(node, ast.If | ast.While | ast.IfExp):
            test = node.test
            text = b"(not (" + source[start(test) : end(test)] + b"))"
            yield Mutation(file, test.lineno, start(test), end(test), text)

    def walk(node: ast.AST) -> Iterator[Mutation]:
        if not isinstance(node, ast.JoinedStr):  # Python 3.11 has no positions for its parts
            yield from of(node)
            for child in ast.iter_child_nodes(node):
                yield from walk(child)

    return [*walk(ast.parse(source))]


def compiles(source: bytes) -> bool:
    """Return whether a file is valid Python."""
    try:
        compile(source, "planted", "exec")
    except SyntaxError:
        return False
    return True


def chosen(tree: Path, folders: list[str], seed: int, count: int) -> list[Mutation]:
    """Draw mistakes that compile at random from all files in the folders."""
    files = sorted({path for folder in folders for path in (tree / folder).rglob("*.py")})
    found = [one for path in files for one in mutations(str(path.relative_to(tree)), path.read_bytes())]
    random.Random(seed).shuffle(found)
    return [*islice((one for one in found if compiles(one.planted((tree / one.file).read_bytes()))), count)]


def stages(tree: Path, file: str) -> list[str]:
    """Return the nearest tests: those for the file, if any, and those for the nearest of its folders that has tests."""
    folder = Path("tests") / Path(file).parent
    near = next(path for path in (folder, *folder.parents) if (tree / path).exists())
    own = near / f"test_{Path(file).name}"
    return [str(path) for path in (own, near) if (tree / path).exists()]


def killer(tree: Path, tests: str, seconds: float | None = None) -> str | None:
    """Return the first test that fails, "time" if the tests take longer than `seconds`, or None if all pass."""
    command = ["uv", "run", "--no-sync", "pytest", "-q", "-x", tests]
    if tests == ALL:
        command += [f"--ignore=tests/{folder}" for folder in ("browser", "cluster", "containers", "publish")]
    process = subprocess.Popen(
        command, cwd=tree, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        told, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if not process.returncode:
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", told, re.MULTILINE)
    return found[1] if found else f"exit code {process.returncode}"


class Planter:
    """Plants mistakes in a checkout and runs tests, which must first pass without a mistake."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree
        self._limits: dict[str, float] = {}

    def killer(self, mutation: Mutation, tests: str) -> str | None:
        """Return the first test that fails with the mistake, "time" if the tests take five times as long and a minute
        more, or None."""
        if tests not in self._limits:
            begun = time.monotonic()
            if failed := killer(self._tree, tests):
                sys.exit(f"{failed} in {tests} fails without a planted mistake; fix it first.")
            self._limits[tests] = 60 + 5 * (time.monotonic() - begun)
        path = self._tree / mutation.file
        source = path.read_bytes()
        path.write_bytes(mutation.planted(source))
        try:
            return killer(self._tree, tests, self._limits[tests])
        finally:
            path.write_bytes(source)


def main() -> int:
    """Plant mistakes, run tests and print the table; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", help="folders of the product, such as data/ingest")
    parser.add_argument("--seed", type=int, default=1, help="the same seed chooses the same mistakes")
    parser.add_argument("--count", type=int, default=100, help="number of mistakes")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped."))
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch, worktree("HEAD", Path(scratch)) as tree:
        left = [*enumerate(chosen(tree, asked.folders, asked.seed, asked.count), 1)]
        planter, count = Planter(tree), len(left)
        for has_all in (False, True):
            planned, left = left, []
            for number, mutation in planned:
                tried = [ALL] if has_all else stages(tree, mutation.file)
                by = next(filter(None, (planter.killer(mutation, tests) for tests in tried)), None)
                if not by:
                    left.append((number, mutation))
                fate = f"killed by {by}" if by else "SURVIVED" if has_all else "survived the nearest tests"
                old = (tree / mutation.file).read_bytes()[mutation.start : mutation.end].decode()
                change = " ".join(f"{old} → {mutation.text.decode()}".split())
                print(f"{number}/{count} {mutation.file}:{mutation.line} | {change} | {fate}", flush=True)
    print(f"{count - len(left)} of {count} killed.")
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main())
