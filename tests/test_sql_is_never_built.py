"""SQL is never built from values: every statement is text from our files, and values are parameters."""

import ast

from tests.support.forks import ROOT
from tests.support.tables import examples

FILES = [path for floor in ("data", "queries", "service") for path in sorted((ROOT / floor).rglob("*.py"))]
TAKING = {"execute", "executemany", "executescript", "sql", "query", "rows", "_rows", "extract_statements", "SQL"}
"""Functions of SQLite, DuckDB, Spark and our wrappers that take SQL as their first or as a named argument."""
READING = {"read_sql", "sql_text", "template"}
"""Functions that read one of the package's SQL files by its name."""
VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "SET ", "PRAGMA ", "DESCRIBE ", "BEGIN ", "FROM ")
ALLOWED = {
    "data/manifest/schema.py:_migrate": "our migrations and their number, passed by the callers that open a database",
    "data/manifest/schema.py:create_database": "our statements for a new database, passed by its callers",
    "data/manifest/kinds.py:insert": "the table and columns for one of three kinds of file",
    "data/manifest/kinds.py:execute": "its callers' SQL, with the name of the table for a kind of file filled in",
    "data/manifest/kinds.py:rows": "its callers' SQL, with the name of the table for a kind of file filled in",
    "data/manifest/database.py:rows": "passes on its callers' SQL, which this test also checks",
    "data/logs/formats.py:read": "the name of one of our formats, and the SQL file with that name",
    "data/logs/formats.py:_add_field_macros": "the type of nginx variables, made in line_layout.py",
    "data/logs/line_layout.py:": "names of variables, which are constants in that file",
    "queries/shell.py:script": "a script for DuckDB's shell, with our names, and with values as literals",
    "queries/compiler/names.py:_schema_of": "our own queries, rewritten to be described",
    "queries/locked_engine.py:describe": "the same queries, which are described and not run",
    "queries/connect.py:table": "the compiled text of a template",
    "queries/snapshot.py:parsed": "passes on its callers' SQL, which this test also checks",
    "queries/snapshot.py:_set": "one of the constants in that file",
    "queries/snapshot.py:": "names of variables and types, which are constants in that file",
    "queries/rollups.py:_count_relation": "three constants in that file",
    "queries/prelude/__init__.py:": "a mask of bits, summed in data/signals.py",
    "queries/definitions.py:define_relations": "the package's SQL files",
    "queries/warehouse.py:answer": "a template from the catalog",
    "queries/warehouse.py:tables": "a template from the catalog",
    "service/robots/plans.py:offences": "one of our SQL files, with values as parameters",
    "queries/sql_process.py:_batches": "a user's own SELECT: it can read only one organization's files, and write none",
    "queries/sql_process.py:_check_read_only": "the same SELECT, before it runs",
    "service/reports/commands/query.py:_run_sql_file": "an operator's own SELECT, read from a file",
    "service/mcp/sources.py:run_sql": "an assistant's own SELECT, on the same engine, over stdio",
    "service/core/control_database.py:rows": "passes on its callers' SQL, which this test also checks",
}


PARTS = {
    ast.Constant: (), ast.JoinedStr: ("values",), ast.FormattedValue: ("value",), ast.BinOp: ("left", "right"),
    ast.IfExp: ("body", "orelse"), ast.Subscript: ("value",), ast.Dict: ("values",), ast.Tuple: ("elts",),
    ast.List: ("elts",),
}  # fmt: skip
"""The kinds of expression that are our text if these parts of the expression are."""


def is_ours(node, constants):
    """Return whether an expression consists only of text from our files."""
    if type(node) in PARTS:
        parts = [getattr(node, name) for name in PARTS[type(node)]]
        return all(is_ours(one, constants) for part in parts for one in (part if isinstance(part, list) else [part]))
    match node:
        case ast.Name():
            return node.id in constants
        case ast.Attribute(attr="__struct_fields__" | "__dataclass_fields__"):  # field names of our records
            return True
        case ast.Call(func=ast.Attribute(attr="join"), args=[parts]):
            return is_ours(node.func.value, constants) and is_ours(parts, constants)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_] as names):
            return name in READING and all(isinstance(part, ast.Constant) for part in names)
    return False


def reads_like_sql(text):
    """Return whether an f-string contains an SQL keyword, since a database may receive it far from this place."""
    return any(verb in part.value for part in text.values if isinstance(part, ast.Constant) for verb in VERBS)


def constants_of(tree):
    """Return the names of constants whose text is from our files."""
    constants = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.isupper() and node.value is not None and is_ours(node.value, constants):
                    constants.add(name)
    return constants


def foreign_in(source):
    """Return the SQL expressions in a module that are not our text, each with the function that contains it."""
    tree = ast.parse(source)
    constants = constants_of(tree)
    holders = {
        id(inner): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    foreign = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if name in TAKING:
                if node.args and not is_ours(node.args[0], constants):
                    foreign.append((node, node.args[0]))
                elif not node.args and node.keywords:
                    foreign.append((node, node))
            case ast.JoinedStr() if reads_like_sql(node) and not is_ours(node, constants):
                foreign.append((node, node))
            case ast.Attribute(attr=name) if name.startswith("execute") and id(node) not in called:
                foreign.append((node, node))
    return [(holders.get(id(node), ""), ast.unparse(sql)) for node, sql in foreign]


def test_sql_is_only_text_from_our_files():
    found = [
        (f"{path.relative_to(ROOT)}:{holder}", sql)
        for path in FILES
        for holder, sql in foreign_in(path.read_text("utf-8"))
    ]
    assert [(place, sql) for place, sql in found if place not in ALLOWED] == []
    assert {place for place, _ in found} == set(ALLOWED)  # the exceptions still exist
    print(f"SQL: {len(FILES)} files, {len(found)} places whose SQL is not our own text, each with its reason")


PLANTED = """
COLUMNS = "a, b"
LATE = COLUMNS + name()
def planted(db, name, names, engine):
    db.execute({sql})
"""


@examples("sql")
def test_sql_built_from_values_is_found(sql):
    assert foreign_in(PLANTED.format(sql=sql))


@examples("sql")
def test_text_from_our_files_is_accepted_as_sql(sql):
    assert not foreign_in(PLANTED.format(sql=sql))
