"""Each word has one meaning on all floors: a glossary, unique names, and phrases that are always wrong."""

import ast
import re
from collections import defaultdict
from functools import cache

from data.manifest import database
from service.core import control_database
from tests.support.forks import ROOT

GLOSSARY = {
    "AnswerCache": "answers of the HTTP API that are kept for some minutes",
    "ApiKeys": "the keys that organizations call the API with",
    "Batch": "one import of one log, or one flush of live visits, that lands as a whole",
    "Block": "a piece of a log that ends at the end of a line",
    "BotRules": "what a user agent says about automation",
    "Classification": "who made a request: category, agent, source, confidence, device",
    "Classifier": "the rules together: from a request to its classification",
    "DamagedFile": "a damaged file, and what is wrong with it",
    "Detector": "finds jobs of one type in the visits",
    "Finding": "a subject with a problem that a detector found, and its evidence",
    "Lake": "the folder with everything that is stored",
    "LandedFile": "a visit file that the manifest lists",
    "LiveIngest": "visits that programs report one by one",
    "Manifest": "the SQLite database that says which files are live",
    "ReportedVisit": "one visit as a program reports it",
    "RuleMatch": "a rule that a request matches, and the classification it gives",
    "Scope": "the visits that a query counts: an organization, days, and filters",
    "Settings": "what an operator configures",
    "IpVerdict": "whether an IP address belongs to the agent that a request claims to be",
    "VisitBuilder": "from the requests of a block to its visits",
    "Warehouse": "the engine that answers queries",
}
"""The project's terms: each is the name of one class, with this meaning."""

PRONOUN = re.compile(r"(?<![a-z])(?:no|some|any|every)body|whoever", re.IGNORECASE)
"""Pronouns that do not say whether a user, a caller, a query or a program is meant."""


@cache
def nodes() -> dict[str, list[ast.AST]]:
    """Return all syntax tree nodes of each file of the three floors."""
    return {
        str(path.relative_to(ROOT)): [*ast.walk(ast.parse(path.read_text("utf-8")))]
        for folder in ("data", "queries", "service")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def definitions(*kinds: type[ast.AST]) -> list[tuple[str, str]]:
    """Return the names of the definitions of these kinds on the three floors, each with its file."""
    return [(node.name, file) for file, found in nodes().items() for node in found if isinstance(node, kinds)]


def homonyms(names: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return names with more than one meaning, with their files. An underscore does not make a different word."""
    places = defaultdict(list)
    for name, file in names:
        places[name.strip("_")].append(file)
    return {name: files for name, files in places.items() if len(files) > 1}


def aliases(floors: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the type aliases in modules of these floors, such as Columns = dict[str, pa.Array], with their files."""
    found = []
    for file, every in nodes().items():
        module = every[0]
        if isinstance(module, ast.Module) and file.startswith(floors):
            statements = [node for node in module.body if isinstance(node, ast.Assign | ast.AnnAssign)]
            targets = [node.targets[0] if isinstance(node, ast.Assign) else node.target for node in statements]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
            found += [(name, file) for name in names if re.fullmatch(r"_?[A-Z][A-Za-z]*[a-z][A-Za-z]*", name)]
    return found


def test_types_in_data_and_queries_have_unique_names():
    floors = ("data/", "queries/")
    classes = [(name, file) for name, file in definitions(ast.ClassDef) if file.startswith(floors)]
    found = aliases(floors)
    assert len(found) > 20
    assert homonyms(classes + found) == {}


def test_class_names_are_unique():
    assert homonyms(definitions(ast.ClassDef)) == {}


def test_every_term_in_the_glossary_is_a_class():
    classes = definitions(ast.ClassDef)
    assert GLOSSARY.keys() - {name.strip("_") for name, _ in classes} == set()


def test_texts_use_is_not_a_instead_of_is_no():
    """English says "is not a number" for what other languages call "no number"; "there is no" is fine."""
    said = re.compile(
        r"(?<!there )\b(is|are) no (?!longer)[a-z]|\bwhat came of\b|\bdid not come\b|\bsigns along\b", re.IGNORECASE
    )
    perhaps = re.compile(r"\b(is|are)\W+([rf]\W)?no\b|came\W+of|not\W+come|signs\W+along", re.IGNORECASE)
    texts = [
        (node.value, str(path))
        for folder in ("data", "queries", "service", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if perhaps.search(content := path.read_text("utf-8"))  # parsing all files takes seconds
        for node in ast.walk(ast.parse(content))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert [(text, file) for text, file in texts if said.search(text)] == []


@cache
def functions_of_tests() -> list[str]:
    """Return the names of all functions in the tests folder."""
    texts = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("*.py"))
    return [name for text in texts for name in re.findall(r"^ *(?:async )?def (\w+)\(", text, re.MULTILINE)]


def test_names_of_tests_have_at_most_60_characters():
    names = [name for name in functions_of_tests() if name.startswith("test_")]
    assert len(names) > 1_000
    assert [name for name in names if len(name) > 60] == []


def test_names_of_tests_are_plain_english():
    names = functions_of_tests()
    assert len(names) > 1_000
    says_no = re.compile(r"(?<!there)_(is|are)_no_(?!longer)")
    assert [name for name in names if says_no.search(name) or PRONOUN.search(name)] == []


def test_the_floors_use_no_vague_pronouns():
    """Messages, docstrings, comments, SQL and pages are checked, except migrations, which never change."""
    released = (*database.MIGRATIONS, *control_database.MIGRATIONS)
    files = [path for floor in ("data", "queries", "service") for path in (ROOT / floor).rglob("*")]
    for path in files:
        if path.suffix in {".py", ".sql", ".html"}:
            text = path.read_text("utf-8")
            for migration in released:
                text = text.replace(migration, "")
            assert PRONOUN.findall(text) == [], path


def test_constants_for_upper_bounds_are_called_max():
    constants = [
        (node.id, file)
        for file, found in nodes().items()
        for node in found
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.isupper()
    ]
    assert [one for one in constants if one[0].strip("_").startswith(("MOST", "LONGEST", "LARGEST"))] == []


def test_homonyms_ignore_underscores():
    assert homonyms([("Batch", "a.py"), ("_Batch", "b.py"), ("Block", "b.py")]) == {"Batch": ["a.py", "b.py"]}
