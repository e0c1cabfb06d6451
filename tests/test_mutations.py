"""Planting mistakes: it is repeatable, and the result is always a different file that is valid Python."""

import ast

import pytest

from tests.mutations import chosen, mutations, stages
from tests.support.forks import ROOT


@pytest.mark.parametrize(
    ("source", "planted"),
    [
        ("a == b", {"a != b"}),
        ("a < b", {"a <= b"}),
        ("a not in b", {"a in b"}),
        ("(a) and (b)", {"(a) or (b)"}),
        ("a + b", {"a - b"}),
        ("x = not a", {"x =  a"}),
        ("'é', True", {"'é', False"}),
        ("7", {"8"}),
        ("def f():\n    return a", {"def f():\n    return None"}),
        ("a if b else c", {"a if (not (b)) else c"}),
        ("f'{a == 1}'", set()),
    ],
)
def test_each_kind_of_mistake_is_planted(source, planted):
    text = source.encode()
    assert {mutation.planted(text).decode() for mutation in mutations("a.py", text)} == planted


def test_a_seed_chooses_the_same_mistakes():
    first, again, other = (chosen(ROOT, ["data/ingest"], seed, 20) for seed in (1, 1, 2))
    assert first == again != other


def test_planted_files_compile_and_differ():
    for mutation in chosen(ROOT, ["data/ingest", "queries"], 1, 40):
        source = (ROOT / mutation.file).read_bytes()
        assert ast.dump(ast.parse(mutation.planted(source))) != ast.dump(ast.parse(source))


def test_the_nearest_tests_run_first():
    assert stages(ROOT, "data/ingest/live.py") == ["tests/data/ingest/test_live.py", "tests/data/ingest"]
    assert stages(ROOT, "queries/compiler/selects.py") == ["tests/queries"]
