"""The house: imports go only down, to the public names of lower floors."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import queries
from tests.support.forks import ROOT

FLOORS = ("data", "queries", "service")
HOUSE = (ROOT / "HOUSE.md").read_text("utf-8")
"""The document whose drawings the imports must match."""
LIBRARIES = {
    "data": "cachetools crawleruseragents duckdb idna iporigin maxminddb msgspec obstore pyarrow re2 tomli ua_parser",
    "queries": "duckdb grpc pyarrow pyspark sqlglot tomli",
    "service": "aiosmtplib cachetools h11 httptools jinja2 jwt markupsafe msgspec orjson prometheus_client protego "
    "pyarrow rich starlette typer uvicorn uvloop",
}
FILES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all nodes in the syntax tree of a file."""
    return [*ast.walk(ast.parse(path.read_text("utf-8")))]


@cache
def imports_of(path: Path) -> list[str]:
    """Return every module that a file imports; `from a import b` counts as a.b."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def files_of(floor: str) -> list[Path]:
    return [path for path in FILES if path.is_relative_to(ROOT / floor)]


def tops_of(path: Path) -> set[str]:
    """Return the top-level packages that a file imports."""
    return {name.partition(".")[0] for name in imports_of(path)}


@cache
def modules_by_name() -> dict[str, Path]:
    """Return the path of every module of the product, by name; a package's name means its __init__."""
    return {name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in FILES}


@cache
def imported_modules(name: str) -> set[str]:
    """Return the modules of the product that a module imports anywhere in its file, except itself."""
    known = modules_by_name()
    found = imports_of(known[name])
    return {one if one in known else one.rpartition(".")[0] for one in found} & known.keys() - {name}


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that import each other, directly or indirectly, given each module's imports."""
    reached = {name: set(targets) for name, targets in imports.items()}
    for middle, onward in reached.items():
        for targets in reached.values():
            if middle in targets:
                targets.update(onward)
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in reached}
    return sorted(map(set, groups - {frozenset()}), key=sorted)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_file_imports_only_what_its_floor_may(floor):
    lower = FLOORS[: FLOORS.index(floor) + 1]
    known = {*sys.stdlib_module_names, *lower, *LIBRARIES[floor].split()}
    assert files_of(floor)
    assert {name_of(path): found for path in files_of(floor) if (found := tops_of(path) - known)} == {}


def drawings() -> list[list[tuple[int, list[str]]]]:
    """Return the drawings in HOUSE.md, first the floors, then the ways: the indentation and names of each line."""
    blocks = re.findall(r"^```\n(.*?)^```", HOUSE, re.DOTALL | re.MULTILINE)
    return [
        [(len(line) - len(line.lstrip()), re.split(" {3,}", line.strip())[0].split()) for line in block.splitlines()]
        for block in blocks
    ]


def part_of(module: str) -> str:
    """Return the room or module of a floor that a module is in: "service.core" for service.core.http.pools."""
    return ".".join(module.split(".")[:2])


def drawn_lines() -> dict[str, int]:
    """Return each room and module in the first drawing, with its line number."""
    lines, floor = {}, ""
    for number, (indentation, names) in enumerate(drawings()[0]):
        floor = floor if indentation else names[0]
        lines |= {f"{floor}.{name}": number for name in names if indentation}
    return lines


def test_a_file_imports_only_its_room_and_lower_rooms():
    lines = drawn_lines()
    modules = modules_by_name().keys() - {*FLOORS}
    assert {part_of(name) for name in modules} == lines.keys()
    arrows = {
        (name, target)
        for name in modules
        for target in imported_modules(name) - {*FLOORS}
        if part_of(name) != part_of(target) and lines[part_of(name)] >= lines[part_of(target)]
    }
    assert arrows == set()


def test_a_floor_does_not_import_its_own_public_names():
    assert [name for name in modules_by_name() if name.partition(".")[0] in imported_modules(name)] == []


@pytest.mark.parametrize("way", drawings()[1:], ids=lambda way: way[0][1][0])
def test_each_drawn_step_is_imported_by_the_step_above(way):
    above = []
    for indentation, (module, *_) in way:
        above = [(other, name) for other, name in above if other < indentation]
        assert not above or module in imported_modules(above[-1][1])
        above.append((indentation, module))


def test_no_files_form_an_import_cycle():
    """Imports inside functions and imports only for types count, too."""
    assert circles({name: imported_modules(name) for name in modules_by_name()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}) == [{"b", "c"}]


def test_only_modules_of_the_manifest_use_its_database():
    outside = [path for path in FILES if not path.is_relative_to(ROOT / "data/manifest")]
    taken = {name for path in outside for name in imports_of(path) if name.startswith("data.manifest.database")}
    assert taken <= {"data.manifest.database.MIGRATIONS"}


def test_duckdb_is_used_only_in_the_listed_modules():
    holders = [
        name_of(path) for path in FILES if path.is_relative_to(ROOT / "queries") and "duckdb" in imports_of(path)
    ]
    assert holders == [
        f"queries/{name}.py" for name in ("definitions", "locked_engine", "rollups", "snapshot", "sql_process")
    ]
    openers = [name_of(path) for path in FILES if re.search(r"duckdb\.connect\(", path.read_text("utf-8"))]
    assert [name for name in openers if name.startswith("queries/")] == ["queries/locked_engine.py"]


def test_only_cluster_modules_import_the_cluster_packages():
    with_extra = {name for name, path in modules_by_name().items() if {"grpc", "pyspark", "sqlglot"} & tops_of(path)}
    of_cluster = {"queries.cluster", "queries.cluster_views", "queries.compiler", "queries.connect"}
    assert {name for name in with_extra if not name.startswith("queries.compiler.")} <= of_cluster
    others = modules_by_name().keys() - with_extra - of_cluster
    importing = {name: found for name in others if (found := imported_modules(name) & of_cluster)}
    assert importing == {"queries.engine": {"queries.cluster"}}  # imported only when a cluster is opened


def test_the_service_uses_only_public_names_of_the_queries():
    public = {f"queries.{name.rpartition('.')[2]}" for name in imports_of(Path(queries.__file__))}
    used = {path: {name for name in imports_of(path) if name.startswith("queries")} for path in files_of("service")}
    assert {name_of(path): found - public for path, found in used.items() if found - public} == {}


def test_the_command_line_imports_no_engine_and_no_web_stack():
    slow = ("duckdb", "queries", "starlette", "uvicorn", "jwt", "re2", "rich")
    code = f"import sys, service.commands; print([name for name in {slow} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_functions_are_short():
    lengths = sorted(node.end_lineno - node.lineno + 1 for path in FILES for node in functions(path))
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[-1] <= 60


def test_files_are_small():
    assert [name_of(path) for path in FILES if path.read_text("utf-8").count("\n") > 300] == []


def test_no_module_has_a_meaningless_name():
    nothing = "utils util helpers helper base manager common misc"
    assert not {path.stem for path in FILES} & {*nothing.split()}
