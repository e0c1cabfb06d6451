"""Figures: their measurement, medians of several runs, the file of all figures, and the picture."""

import asyncio
import contextlib
import subprocess
import sys
from itertools import pairwise
from xml.etree.ElementTree import fromstring

import pytest

from benchmarks.figures import OURS, Figure, beside, over_runs, percentile_99
from benchmarks.importing import run
from benchmarks.picture import CASES, picture
from benchmarks.printing import document_of
from benchmarks.steady import CONNECTIONS, HEALTH, RATE, _Asker
from tests.support.docs import ROOT

BENCHMARKS = ROOT / "benchmarks"
SVG = "{http://www.w3.org/2000/svg}"


def test_runs_are_summarized_by_medians_and_extremes():
    """Times and ratios are medians over the runs, however long the slowest run took."""
    runs = [([10, 12, 14], [20, 24, 28]), ([30, 50, 90], [30, 50, 90]), ([8, 11, 12], [32, 44, 48])]
    figures = [found for ours, theirs in runs for found in beside("dashboard", "ms", {OURS: ours, "peer": theirs}, 7)]
    ours, theirs = over_runs(figures)
    assert (ours.case, ours.who, ours.visits, ours.ratio) == ("dashboard", OURS, 7, None)
    assert (ours.least, ours.median, ours.most) == (8, 12, 90)
    assert (theirs.who, theirs.least, theirs.median, theirs.most, theirs.ratio) == ("peer", 20, 44, 90, 0.5)


def test_a_run_replaces_only_the_section_of_its_cases():
    def run(cases, median, document=""):
        told = {"at": "2026-11-24T10:00:00", "machine": {"cores": 2, "machine": "x", "python": "3.11"}, "versions": {},
                "cases": cases, "runs": 1, "organizations": 1, "visits": {1_000: "digest"}}  # fmt: skip
        return document_of(told, [Figure("import", "s", median, median, median)], document)

    both = run("cold", 2, run("import,serve", 1))
    heads = [line for line in both.splitlines() if line.startswith("#")]
    assert heads == ["# All figures", "## import,serve", "## cold"]
    again = run("import,serve", 7, both)
    assert again == both.replace("1.00", "7.00")
    assert run("cold", 2, again) == again


# The picture


def drawn(*figures):
    """Return the texts of a picture, its bars as (class, left end, right end), and the positions of its lines."""
    svg = fromstring(picture(figures))
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    bars = [
        (bar.get("class"), float(bar.get("x")), float(bar.get("x")) + float(bar.get("width")))
        for bar in svg.iter(f"{SVG}rect")
    ]
    return texts, bars, [float(line.get("x1")) for line in svg.iter(f"{SVG}line")]


def of(case, unit, ratio, who="a peer"):
    return Figure(case, unit, 1, 1, 1, who, ratio, 1_000)


@pytest.mark.parametrize(
    ("unit", "ratio", "expected", "text"),
    [("ms", 0.1, "faster", "10"), ("ms", 2, "slower", "0.5"), ("requests/s", 2, "faster", "2")],
)
def test_a_bar_shows_the_faster_side_and_the_factor(unit, ratio, expected, text):
    texts, ((kind, start, end),), lines = drawn(of("import", unit, ratio))
    assert kind == expected
    assert text in texts
    assert {"import, 1,000 visits", "a peer"} <= set(texts)
    equal = lines[texts.index("1") - 1]
    assert (start if expected == "faster" else end) == pytest.approx(equal, abs=0.2)


def test_the_scale_is_logarithmic_and_bars_end_on_it():
    _, bars, lines = drawn(of("import", "s", 0.001), of("cold dashboard", "ms", 0.01), of("cold dashboard", "ms", 1))
    steps = [after - before for before, after in pairwise(lines)]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    assert [end for _, _, end in bars] == pytest.approx([lines[2], lines[0], lines[3]], abs=0.2)


def test_a_chart_without_peers_draws_no_bars():
    other = [Figure("import", "s", 1, 1, 1), of("on disk", "bytes", 0.5), of("import", "s", 1, "itself at 5 visits")]
    assert drawn(*other)[1] == []


def test_the_picture_matches_the_table_of_figures():
    rows = [line.strip("|").split("|") for line in (BENCHMARKS / "figures.md").read_text("utf-8").splitlines()]
    cells = [[cell.strip() for cell in row] for row in rows if len(row) == 10]
    figures = [
        Figure(case, unit, 0, 0, 0, who, float(ratio) if ratio else None, int(visits.replace(",", "")))
        for case, visits, who, unit, _, _, _, ratio, *_ in cells
        if case in CASES
    ]
    assert len(figures) > 10
    assert (BENCHMARKS / "ratios.svg").read_text("utf-8") == picture(figures)


def test_measured_memory_excludes_the_measuring_process() -> None:
    large = bytearray(b"1" * 150_000_000)
    taken = run([sys.executable, "-c", "sum(range(1_000_000))"])
    assert taken.megabytes < 100
    del large
    assert taken.processor_seconds > 0
    assert taken.seconds > 0


def test_a_program_that_fails_is_not_measured() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", "raise SystemExit(3)"])


def test_a_program_is_measured_until_it_writes_a_given_line() -> None:
    """Otherwise it would run for an hour."""
    code = "import sys, time; print('all done', file=sys.stderr, flush=True); time.sleep(3600)"
    taken = run([sys.executable, "-c", code], until="done")
    assert [line for _, line in taken.lines] == ["all done\n"]
    assert taken.seconds >= taken.lines[0][0]


def test_a_program_that_never_writes_the_line_is_not_measured() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        run([sys.executable, "-c", "print('all done')"], until="done")


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy"


async def asked(answer, paths, seconds, *, held_back):
    """Return measurements of a server that, once warmed up, withholds its answers until `held_back` requests are
    waiting."""
    waiting, warm = [], asyncio.Event()

    async def serve(reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError), contextlib.closing(writer):
            while await reader.readuntil(b"\r\n\r\n"):
                if not warm.is_set():
                    writer.write(OK)
                    continue
                waiting.append(writer)
                if len(waiting) == held_back:
                    warm.clear()
                    for held in waiting:
                        held.write(answer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        asker = _Asker(server.sockets[0].getsockname()[1], "key", paths)
        await asker.warm_up()
        warm.set()
        try:
            return await asker.measure(seconds)
        finally:
            asker.close()


def test_waits_are_counted_from_the_scheduled_time():
    found = asyncio.run(asked(OK, ["/a"], (CONNECTIONS + 10) / RATE, held_back=CONNECTIONS))
    times = [*found[HEALTH], *found["/a"]]
    assert len(times) == len(found["late"]) == CONNECTIONS + 10
    assert max(times) >= 1000 * (CONNECTIONS - 1) / RATE


def test_a_response_other_than_200_ends_the_measurement():
    with pytest.raises(ExceptionGroup) as raised:
        asyncio.run(asked(BUSY, ["/a"], 2 / RATE, held_back=2))
    assert "busy" in str(raised.value.exceptions[0])


@pytest.mark.parametrize(("values", "expected"), [([3.0], 3.0), (range(1, 101), 99), (range(1, 1001), 990)])
def test_99_of_100_values_do_not_exceed_the_percentile(values, expected):
    assert percentile_99(values) == expected
