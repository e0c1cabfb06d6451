"""SQL is text of ours: what a database is given was written by us, and values reach it as parameters only."""

import ast

from tests.support.forks import ROOT
from tests.support.tables import examples

FILES = [path for floor in ("data", "queries", "service") for path in sorted((ROOT / floor).rglob("*.py"))]
TAKING = {"execute", "executemany", "executescript", "sql", "query", "rows", "_rows", "extract_statements", "SQL"}
"""What takes SQL as its first argument or by name: of SQLite, of DuckDB, of Spark, and ours that hand it on."""
READING = {"read_sql", "sql_text", "template"}
"""Functions that read a SQL file of the package, by its name."""
VERBS = ("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "CREATE ", "SET ", "PRAGMA ", "DESCRIBE ", "BEGIN ", "FROM ")
ALLOWED = {
    "data/store/schema.py:_migrate": "statements and number of a table of ours, given by those who open a database",
    "data/store/schema.py:create_database": "the statements of a database of ours, given by those who create it",
    "data/store/manifest.py:rows": "hands on what its callers give it, and they are looked at here",
    "data/logs/formats.py:read": "the name of a format of ours and the SQL file of that name",
    "queries/shell.py:script": "a script for DuckDB's own shell: names of ours, and values as literals",
    "queries/compiler/names.py:_described": "queries of ours, written again to be described",
    "queries/locked_engine.py:describe": "the same queries, which are described and not run",
    "queries/connect.py:table": "the compiled text of a template",
    "queries/variables.py:parsed": "hands on what its callers give it, and they are looked at here",
    "queries/variables.py:set_variables": "one of the constants of that file",
    "queries/variables.py:": "the names of the fields of Scope",
    "queries/rollups.py:_count_relation": "three constants of that file",
    "queries/definitions.py:define_relations": "the SQL files of the package",
    "queries/warehouse.py:answer": "a template of the catalogue",
    "queries/warehouse.py:tables": "a template of the catalogue",
    "service/robots.py:offences": "a SQL file of ours, with values as parameters",
    "queries/sql_process.py:_batches": "somebody's own SELECT: of one organization's files, which it cannot write",
    "queries/sql_process.py:_check_read_only": "the same SELECT, before it runs",
    "service/commands/query.py:_run_sql_file": "an operator's own SELECT, read from his file",
    "service/mcp/sources.py:run_sql": "an assistant's own SELECT, on the same engine, over stdio",
    "service/control_database.py:rows": "hands on what its callers give it, and they are looked at here",
}


def is_ours(node, constants):
    """Whether an expression is made of nothing but text that stands in our files."""
    match node:
        case ast.Constant():
            return True
        case ast.Name():
            return node.id in constants
        case ast.Attribute(attr="__struct_fields__" | "__dataclass_fields__"):  # names of fields of a record of ours
            return True
        case ast.JoinedStr():
            return all(is_ours(part, constants) for part in node.values)
        case ast.FormattedValue():
            return is_ours(node.value, constants)
        case ast.BinOp():
            return is_ours(node.left, constants) and is_ours(node.right, constants)
        case ast.IfExp():
            return is_ours(node.body, constants) and is_ours(node.orelse, constants)
        case ast.Subscript():
            return is_ours(node.value, constants)
        case ast.Dict():
            return all(is_ours(value, constants) for value in node.values)
        case ast.Tuple() | ast.List():
            return all(is_ours(element, constants) for element in node.elts)
        case ast.Call(func=ast.Attribute(attr="join"), args=[parts]):
            return is_ours(node.func.value, constants) and is_ours(parts, constants)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_] as names):
            return name in READING and all(isinstance(part, ast.Constant) for part in names)
    return False


def reads_like_sql(text):
    """Whether an f-string holds a word of a statement: it may be handed to a database far from where it stands."""
    return any(verb in part.value for part in text.values if isinstance(part, ast.Constant) for verb in VERBS)


def constants_of(tree):
    """The names that a module gives to text of ours, once and for all."""
    constants = set()
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name.isupper() and node.value is not None and is_ours(node.value, constants):
                    constants.add(name)
    return constants


def foreign_in(source):
    """The SQL of a module that is not ours, as it is written there, by the function it stands in."""
    tree = ast.parse(source)
    constants = constants_of(tree)
    holders = {
        id(inner): node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[sql, *_]) if name in TAKING:
                if not is_ours(sql, constants):
                    found.append((holders.get(id(node), ""), ast.unparse(sql)))
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[], keywords=[_, *_]) if (
                name in TAKING
            ):
                found.append((holders.get(id(node), ""), ast.unparse(node)))
            case ast.JoinedStr() if reads_like_sql(node) and not is_ours(node, constants):
                found.append((holders.get(id(node), ""), ast.unparse(node)))
            case ast.Attribute(attr=name) if name.startswith("execute") and id(node) not in called:
                found.append((holders.get(id(node), ""), ast.unparse(node)))
    return found


def test_no_sql_is_built_of_anything_but_text_of_ours():
    found = [
        (f"{path.relative_to(ROOT)}:{holder}", sql)
        for path in FILES
        for holder, sql in foreign_in(path.read_text("utf-8"))
    ]
    assert [(place, sql) for place, sql in found if place not in ALLOWED] == []
    assert {place for place, _ in found} == set(ALLOWED)  # what is allowed is there still
    print(f"SQL: {len(FILES)} files, {len(found)} places whose SQL is not text of ours, each with its reason")


PLANTED = """
COLUMNS = "a, b"
LATE = COLUMNS + name()
def planted(db, name, names, engine):
    db.execute({sql})
"""


@examples("sql")
def test_sql_that_is_built_is_found(sql):
    assert foreign_in(PLANTED.format(sql=sql))


@examples("sql")
def test_sql_of_ours_is_let_pass(sql):
    assert not foreign_in(PLANTED.format(sql=sql))
