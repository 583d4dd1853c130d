import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from steadytree.reporting.svg.canvas import Axis, Chart, frame_picture, stack
from steadytree.reporting.svg.charts import (
    Point,
    Series,
    Strip,
    curve,
    heat,
    scatter,
    strips,
)
from steadytree.reporting.svg.figures import calibration_chart

KINDS = ["curve", "scatter", "strips", "heat", "stack"]
SCRIPT = "<script>alert('x')</script>\"'&"


def charts(name):
    across, up = Axis.over([0, 1.3], name), Axis.over([0.8, 0.93], name, percent=True)
    line = Series(name, [0, 1], [0.9, 0.8], low=[0.85, 0.8], high=[0.92, 0.83], dots=True)
    points = [Point(name, 0.1, 0.9, 3, y_interval=(0.85, 0.92)), Point("b", 1.2, 0.9, note=name)]
    parts = {
        "curve": curve([line, line], across, up),
        "scatter": scatter(points, across, up),
        "strips": strips([Strip(name, [1, 2], 0, 3, [1.5], name, name, name)]),
        "heat": heat([name], [name], [[0.4]], [[name]]),
    }
    parts["stack"] = stack(list(parts.values()))
    return {kind: frame_picture(part, name) for kind, part in parts.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_charts_are_whole_xml_and_texts_are_escaped(kind):
    picture = charts(SCRIPT)[kind]
    root = ElementTree.fromstring(str(picture))
    assert root.tag.endswith("svg")
    assert "<script" not in picture
    assert root.attrib["aria-label"] == SCRIPT
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", picture)


@pytest.mark.parametrize("seed", range(30))
def test_axes_hold_all_values_and_have_few_round_ticks(seed):
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=5) * 10.0 ** rng.integers(-5, 6)).tolist()
    axis = Axis.over(values, "x")
    assert axis.low <= min(values)
    assert axis.high >= max(values)
    assert 2 <= len(axis.ticks) <= 8
    assert all(len(axis.text(tick)) < 12 for tick in axis.ticks)


@pytest.mark.parametrize("values", [[0.0], [1.0, 1.0], [0.5, 0.5]])
def test_axes_over_one_value_have_a_length(values):
    for percent in (False, True):
        axis = Axis.over(values, "x", percent=percent)
        assert axis.low < axis.high
        assert axis.share(values[0]) == pytest.approx(axis.share(values[0]))


def test_shares_stay_between_0_and_100_per_cent():
    axis = Axis.over([0.03, 0.99], "x", percent=True)
    assert axis.ticks[0] >= 0
    assert axis.ticks[-1] <= 1


def test_points_are_drawn_where_the_axes_say():
    across, up = Axis.over([0, 10], "x"), Axis.over([0, 1], "y")
    x, y = Chart(across, up).at(5, 0.5)
    picture = scatter([Point("a", 5, 0.5)], across, up).body
    assert f'cx="{x:.1f}" cy="{y:.1f}"' in picture


@pytest.mark.parametrize("seed", range(10))
def test_names_of_points_do_not_hide_each_other(seed):
    rng = np.random.default_rng(seed)
    points = [Point(f"learner {k}", *rng.uniform(0.4, 0.6, 2)) for k in range(6)]
    picture = scatter(points, Axis.over([0, 1], "x"), Axis.over([0, 1], "y")).body
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" class="name halo"', picture)
    places = [(float(x), float(y)) for x, y in found]
    assert len(places) == 6
    for a, b in ((a, b) for a in places for b in places if a < b):
        assert abs(a[1] - b[1]) >= 12 or abs(a[0] - b[0]) >= 40


def test_charts_draw_one_mark_for_each_value():
    axes = Axis.over([0, 0.4], "distance"), Axis.over([0.5, 0.95], "accuracy", percent=True)
    points = [Point("a", 0.1, 0.9), Point("b", 0.4, 0.95, weight=9)]
    assert scatter(points, *axes).body.count("<circle") == 2
    assert strips([Strip("age", [40, 41, 60], 18, 90, own=[41])]).body.count('"own"') == 1
    assert heat(["age", "income"], ["root"], [[0.9], [0.1]]).body.count('="heat"') == 2
    line = Series("tree", [0, 0.1, 0.4], [0.9, 0.8, 0.5], steps=True)
    assert curve([line], *axes).body.count("<path") == 1


@pytest.mark.parametrize(("largest", "shown"), [(0.03, "3 %"), (0.12, "15 %"), (0.45, "100 %")])
def test_calibration_of_small_risks_fills_the_picture(largest, shown):
    bins = [
        {"stated": share, "observed": 0.9 * share, "interval": [0.5 * share, largest]}
        for share in (0.1 * largest, 0.9 * largest)
    ]
    svg = ElementTree.fromstring(str(calibration_chart({"bins": bins})))
    texts = [node.text for node in svg.iter() if node.tag.endswith("text")]
    assert texts.count(shown) == 2  # the ends of both axes
    assert ("100 %" in texts) == (shown == "100 %")
