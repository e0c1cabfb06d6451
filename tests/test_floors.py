"""The house: an import only goes down, to a lower floor's public names."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import queries

ROOT = Path(__file__).parent.parent
FLOORS = ("data", "queries", "service")
ROOF = ("tests", "benchmarks")
GROUND = {"errors", "hosts", "local_time", "progress", "signals", "sql", "text", "visits"}
ROOMS = {
    "rules": GROUND,
    "logs": GROUND,
    "store": GROUND | {"rules", "logs"},
    "ingest": GROUND | {"rules", "logs", "store"},
    "maintenance": GROUND | {"rules", "logs", "store", "ingest"},
    "publish": GROUND | {"store"},
}
"""The rooms of data/, and what each may import beside itself."""
FACADE = "data/__init__.py"
"""The public names of data/: nobody inside imports it, and it may import any room."""
STOREYS = (
    {"clock", "encoding", "mail_settings", "metrics", "priority", "setting_values", "threads"},
    {"control_database", "csv_files", "logs", "settings"},
    {"api_keys", "cluster"},
    {"outgoing"},
    {"hooks"},
    {"jobs"},
    {"robots"},
    {"http"},
    {"mcp", "pages", "server"},
    {"mail"},
    {"demo", "doctor", "maintenance"},
    {"app"},
    {"commands"},
    {"program"},
)
"""The rooms and modules of service/, from the ground up: each imports only itself and what is in a set above its own.

Drawn in service/README.md.
"""
LIBRARIES = {
    "data": {
        "cachetools",
        "crawleruseragents",
        "duckdb",
        "idna",
        "maxminddb",
        "msgspec",
        "obstore",
        "pyarrow",
        "re2",
        "tomli",
        "ua_parser",
    },
    "queries": {"duckdb", "grpc", "pyarrow", "pyspark", "sqlglot", "tomli"},
    "service": {
        "aiosmtplib",
        "cachetools",
        "h11",
        "httptools",
        "jinja2",
        "jwt",
        "markupsafe",
        "msgspec",
        "orjson",
        "prometheus_client",
        "protego",
        "pyarrow",
        "rich",
        "starlette",
        "typer",
        "uvicorn",
        "uvloop",
    },
}
FILES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Everything in the syntax tree of a file."""
    return [*ast.walk(ast.parse(path.read_text("utf-8")))]


@cache
def imports_of(path: Path) -> list[str]:
    """Every module a file imports, `from a import b` as a.b."""
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
    """The packages that a file imports."""
    return {name.partition(".")[0] for name in imports_of(path)}


@cache
def modules_by_name() -> dict[str, Path]:
    """Every module of the product: a package stands for its __init__."""
    return {name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in FILES}


@cache
def imported_modules(name: str) -> set[str]:
    """The modules of the product that a module imports, wherever in the file; not itself."""
    known = modules_by_name()
    found = imports_of(known[name])
    return {one if one in known else one.rpartition(".")[0] for one in found} & known.keys() - {name}


def circles(imports: dict[str, set[str]]) -> list[set[str]]:
    """The groups of modules that reach each other, of each module's imports."""
    reached = {name: set(targets) for name, targets in imports.items()}
    for middle, onward in reached.items():
        for targets in reached.values():
            if middle in targets:
                targets.update(onward)
    groups = {frozenset(other for other in reached[name] if name in reached[other]) for name in reached}
    return sorted(map(set, groups - {frozenset()}), key=sorted)


@pytest.mark.parametrize("floor", FLOORS)
def test_a_file_imports_only_its_own_floor_and_lower_ones(floor):
    above = {*FLOORS[FLOORS.index(floor) + 1 :], *ROOF}
    assert files_of(floor)
    assert {name_of(path): found for path in files_of(floor) if (found := tops_of(path) & above)} == {}


def room_of(module: str) -> str:
    """The part of data/ that a module lies in, such as "store" for data.store.lake; "" for the public names."""
    part = f"{module}.".split(".")[1]
    return part if part in ROOMS or part in GROUND else ""


def test_a_file_of_data_imports_only_its_own_room_and_lower_ones():
    rooms = {
        path: room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for path in files_of("data")
        if name_of(path) != FACADE
    }
    assert [name_of(path) for path, room in rooms.items() if not room] == []  # no room, and no module of the ground
    used = {
        path: {room_of(name) for name in imports_of(path) if name.partition(".")[0] == "data"}
        - {room, *ROOMS.get(room, GROUND)}
        for path, room in rooms.items()
    }
    assert {name_of(path): found for path, found in used.items() if found} == {}


def part_of(module: str) -> str:
    """The room or module of service/ that a module belongs to, such as "http" for service.http.cache."""
    return f"{module}.".split(".")[1]


def test_a_file_of_service_imports_only_its_own_room_and_lower_ones():
    storeys = {part: number for number, storey in enumerate(STOREYS) for part in storey}
    modules = {name for name in modules_by_name() if name.startswith("service.")}
    assert {part_of(name) for name in modules} <= storeys.keys()
    arrows = {
        (name, target)
        for name in modules
        for target in imported_modules(name) & modules
        if part_of(name) != part_of(target) and storeys[part_of(name)] <= storeys[part_of(target)]
    }
    assert arrows == set()


def test_no_files_import_each_other_in_a_circle():
    """Neither while they load, nor for types alone, nor inside of functions."""
    assert circles({name: imported_modules(name) for name in modules_by_name()}) == []


def test_a_circle_of_imports_is_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}, "e": set()}) == [{"b", "c"}]


@pytest.mark.parametrize("floor", FLOORS)
def test_a_file_imports_only_the_libraries_of_its_floor(floor):
    known = {*sys.stdlib_module_names, *FLOORS, *LIBRARIES[floor]}
    assert {name_of(path): found for path in files_of(floor) if (found := tops_of(path) - known)} == {}


def test_duckdb_answers_from_one_engine_and_counts_ahead_in_another():
    holders = [
        name_of(path) for path in FILES if path.is_relative_to(ROOT / "queries") and "duckdb" in imports_of(path)
    ]
    assert holders == [
        "queries/locked_engine.py",
        "queries/rollups.py",
        "queries/sql_process.py",
        "queries/variables.py",
    ]
    openers = [name_of(path) for path in FILES if re.search(r"duckdb\.connect\(", path.read_text("utf-8"))]
    assert [name for name in openers if name.startswith("queries/")] == ["queries/locked_engine.py"]


def test_only_a_cluster_needs_the_packages_of_its_extra():
    with_extra = {name for name, path in modules_by_name().items() if {"grpc", "pyspark", "sqlglot"} & tops_of(path)}
    of_cluster = {"queries.cluster", "queries.cluster_views", "queries.compiler", "queries.connect"}
    assert {name for name in with_extra if not name.startswith("queries.compiler.")} <= of_cluster
    others = modules_by_name().keys() - with_extra - of_cluster
    importing = {name: found for name in others if (found := imported_modules(name) & of_cluster)}
    assert importing == {"queries.engine": {"queries.cluster"}}  # when it is asked for


def test_of_the_queries_floor_the_service_uses_the_public_names_only():
    public = {f"queries.{name}" for name in queries.__all__}
    used = {path: {name for name in imports_of(path) if name.startswith("queries")} for path in files_of("service")}
    assert {name_of(path): found - public for path, found in used.items() if found - public} == {}


@pytest.mark.parametrize("floor", ["data", "queries"])
def test_public_names_are_exactly_what_a_floor_exports(floor):
    module = __import__(floor)
    tree = ast.parse((ROOT / floor / "__init__.py").read_text("utf-8"))
    imported = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert module.__all__ == sorted(module.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert set(module.__all__) == imported


def test_the_command_line_answers_without_the_engine_and_the_web_stack():
    slow = ("duckdb", "starlette", "uvicorn", "jwt", "re2")
    code = f"import sys, service.commands; print([name for name in {slow} if name in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def functions(path: Path) -> list[ast.FunctionDef]:
    return [node for node in nodes(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_functions_are_short_and_files_are_small():
    lengths = sorted(node.end_lineno - node.lineno + 1 for path in FILES for node in functions(path))
    assert lengths[len(lengths) // 2] <= 10
    assert lengths[-1] <= 60
    assert [name_of(path) for path in FILES if path.read_text("utf-8").count("\n") > 300] == []


def test_no_module_has_a_name_that_says_nothing():
    assert not {path.stem for path in FILES} & {
        "utils",
        "util",
        "helpers",
        "helper",
        "base",
        "manager",
        "common",
        "misc",
    }
