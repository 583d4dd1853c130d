import sys

import pytest

from steadytree.reporting.matplotlib_plots import plot_stability_curve
from steadytree.stability.curve import CurvePoint, StabilityCurve


def curve(*epsilons, removed=1):
    points = [CurvePoint(e, 0.3 / (1 + e), (0.1, 0.4), 0.95, 0.9, (0.88, 0.92)) for e in epsilons]
    return StabilityCurve(tuple(points), removed)


def test_both_panels_and_the_greedy_reference():
    figure = plot_stability_curve(curve(0, 0.1, 1))
    upper, lower = figure.axes
    assert upper.get_xscale() == "log"
    assert upper.get_title() == "without one row"
    labels = [text.get_text() for text in lower.get_legend().get_texts()]
    assert labels == [
        "greedy, training",
        "greedy, held out",
        "stable, training",
        "stable, held out",
    ]
    assert [text.get_text() for text in upper.get_legend().get_texts()] == ["greedy", "stable"]


@pytest.mark.parametrize(
    ("removed", "title"), [(5, "without 5 rows"), (0.1, "without 10 % of the rows")]
)
def test_without_greedy_and_on_axes_of_the_caller(removed, title, tmp_path):
    figure = plot_stability_curve(curve(0.1, 1))
    again = plot_stability_curve(curve(0.5, 1, removed=removed), figure.axes)
    assert again is figure
    assert figure.axes[0].get_title() == title
    figure.savefig(tmp_path / "curve.png")
    assert (tmp_path / "curve.png").stat().st_size > 1000


def test_greedy_alone():
    assert len(plot_stability_curve(curve(0)).axes) == 2


def test_matplotlib_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plot_stability_curve needs matplotlib.*\[plot\]"):
        plot_stability_curve(curve(0, 1))
