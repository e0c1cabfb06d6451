"""The file of all figures: a run replaces its own section only."""

from benchmarks.figures import Figure
from benchmarks.printing import document_of


def run(cases, median, document=""):
    told = {"at": "2026-11-24T10:00:00", "machine": {"cores": 2, "machine": "x", "python": "3.11"}, "versions": {},
            "cases": cases, "runs": 1, "organizations": 1, "visits": {1_000: "digest"}}  # fmt: skip
    return document_of(told, [Figure("import", "s", median, median, median)], document)


def test_a_run_replaces_the_section_of_its_cases_and_leaves_the_others():
    both = run("cold", 2, run("import,serve", 1))
    assert [line for line in both.splitlines() if line.startswith("#")] == [
        "# All figures",
        "## import,serve",
        "## cold",
    ]
    again = run("import,serve", 7, both)
    assert again == both.replace("1.00", "7.00")
    assert run("cold", 2, again) == again
