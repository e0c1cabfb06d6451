"""Figures of several runs are summed up in one."""

from benchmarks.figures import OURS, beside, over_runs


def test_runs_are_summed_up_by_medians_and_extremes() -> None:
    """The median run counts for time and for the ratio, whatever the slowest run took."""
    runs = [([10, 12, 14], [20, 24, 28]), ([30, 50, 90], [30, 50, 90]), ([8, 11, 12], [32, 44, 48])]
    figures = [found for ours, theirs in runs for found in beside("dashboard", "ms", {OURS: ours, "peer": theirs}, 7)]
    ours, theirs = over_runs(figures)
    assert (ours.case, ours.who, ours.visits, ours.ratio) == ("dashboard", OURS, 7, None)
    assert (ours.least, ours.median, ours.most) == (8, 12, 90)
    assert (theirs.who, theirs.least, theirs.median, theirs.most, theirs.ratio) == ("peer", 20, 44, 90, 0.5)
