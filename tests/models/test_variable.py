"""Variables of a scorecard: bands that exclude each other and add up to what the card says."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from steadytree._base.exceptions import TreeFileError
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.metrics.complexity import complexity
from steadytree.models.condition import Condition
from steadytree.models.files import load, save
from steadytree.models.risk_table import RiskGroup
from steadytree.models.scorecard import Scorecard
from steadytree.models.variable import Band, Variable, category_conditions, number_conditions
from tests.models.scorecards import random_card, random_rows_of_card

SPACE = FeatureSpace.declare(
    bounds={"age": (18, 99), "smoker": (0, 1)},
    categories={"ward": ["a", "b", "c"]},
    kinds={"age": "integer", "smoker": "binary"},
)


def banded(**more):
    """Age in three bands, smoking, wards in two groups."""
    found = number_conditions(0, [40, 60], [0, 1, 3], missing=1)
    found += number_conditions(1, [1], [0, 2], missing=0)
    found += category_conditions(2, [1, 0, 1], missing=1)
    conditions, points = zip(*found, strict=True)
    return Scorecard(SPACE, ["no", "yes"], conditions, points, 0, 0.7, -2.0, decision=3, **more)


@pytest.mark.parametrize("seed", range(30))
def test_bands_of_any_card_add_up_to_its_totals(seed):
    rng = np.random.default_rng(seed)
    card = random_card(rng, int(rng.integers(0, 7)), n_classes=int(rng.integers(2, 4)))
    rows = random_rows_of_card(rng, card, 60)
    values = card.encode(rows)
    totals = np.tile(card.offset, (len(rows), 1))
    for variable in card.variables:
        points = np.array([band.points for band in variable.bands])
        totals += points[variable.band_of(values[:, variable.feature])]
    np.testing.assert_array_equal(totals.reshape(card.score(rows).shape), card.score(rows))


@pytest.mark.parametrize("seed", range(30))
def test_a_value_is_in_the_one_band_whose_words_fit_it(seed):
    rng = np.random.default_rng(seed)
    thresholds = np.sort(rng.choice(np.arange(1, 20), 3, replace=False)).tolist()
    points = rng.integers(0, 4, 4)
    points -= points.min()
    space = FeatureSpace.declare(bounds={"x": (0, 20)})
    found = number_conditions(0, thresholds, points.tolist(), 2)
    card = Scorecard(space, [0, 1], *map(list, zip(*found, strict=True)), 0, decision=1)
    values = np.append(np.arange(-1, 22) / 1.0, np.nan)
    (variable,) = card.variables
    for x, index in zip(values, variable.band_of(values), strict=True):
        inside = [
            band.is_missing if np.isnan(x) else band.low <= x < band.high and not band.is_missing
            for band in variable.bands
        ]
        assert inside == [k == index for k in range(len(inside))]
        given = 2 if np.isnan(x) else points[np.searchsorted(thresholds, x, side="right")]
        assert variable.bands[index].points == (given,)
    assert not np.isin(np.diff([band.points[0] for band in variable.bands[:-1]]), 0).any()


@pytest.mark.parametrize(("n_towns", "n_groups"), [(8, 3), (9, 3), (9, 2), (9, 1)])
def test_the_largest_of_many_bands_of_many_categories_is_any_other(n_towns, n_groups):
    towns = [f"t{k}" for k in range(n_towns)]
    space = FeatureSpace.declare(categories={"town": towns})
    points = [min(k // 2, n_groups - 1) for k in range(n_towns)]
    found = category_conditions(0, points, missing=0)
    if not found:
        return
    card = Scorecard(space, [0, 1], *map(list, zip(*found, strict=True)), 0, decision=1)
    (variable,) = card.variables
    sizes = [len(band.categories) for band in variable.bands]
    others = [k for k, text in enumerate(variable.texts()) if text == "any other"]
    assert others == ([sizes.index(max(sizes))] if n_towns > 8 and len(sizes) > 2 else [])


def test_bands_in_words_are_what_is_applied():
    texts = {variable.name: variable.texts() for variable in banded().variables}
    assert texts == {
        "age": ["< 40", "40 to < 60", "≥ 60", "missing"],
        "smoker": ["no", "yes", "missing"],
        "ward": ["b", "a, c", "missing or unknown"],
    }
    assert [[b.points[0] for b in v.bands] for v in banded().variables] == [
        [0, 1, 3, 1],
        [0, 2, 0],
        [0, 1, 1],
    ]
    assert Band((0,)).text(SPACE[0]) == "any"


def test_categories_that_are_ranges_are_listed_in_their_order():
    column = Column("age", "categorical", categories=("30-59", "60+", "<30", "≥ 80"))
    assert Band((0,), categories=(0, 2)).text(column) == "<30, 30-59"
    assert Band((1,), categories=(1, 3)).text(column) == "60+, ≥ 80"


def test_missing_values_that_nobody_had_share_the_line_of_the_band_they_count_as():
    """A line of their own only where rows were missing, or where no band has their points."""
    nobody = FeatureSpace([replace(column, missing=False) for column in SPACE])
    card = replace(banded(), space=nobody)
    assert {v.name: [text for text, _ in v.listed()] for v in card.variables} == {
        "age": ["< 40", "40 to < 60, or missing", "≥ 60"],
        "smoker": ["no", "yes"],
        "ward": ["b", "a, c, or missing or unknown"],
    }
    assert repr(card) == "Scorecard(3 variables, 7 bands, 2 classes)"
    assert complexity(card).n_questions == 4  # two thresholds, smoking, two groups
    assert [len(v.listed()) for v in banded().variables] == [4, 3, 3]
    unlike = number_conditions(0, [40], [0, 2], missing=1)
    card = Scorecard(nobody, [0, 1], *map(list, zip(*unlike, strict=True)), 0, decision=1)
    assert [text for text, _ in card.variables[0].listed()] == ["< 40", "≥ 40", "missing"]
    assert complexity(card).n_questions == 2


def test_the_largest_of_many_groups_is_any_other():
    space = FeatureSpace.declare(categories={"site": [f"s{k}" for k in range(12)]})
    conditions = [Condition(0, "among", categories=(1, 2)), Condition(0, "among", categories=(5,))]
    (site,) = Scorecard(space, [0, 1], conditions, [1, 2], 0).variables
    assert site.texts() == ["any other", "s1, s2", "s5", "missing or unknown"]


def test_points_of_a_monotone_variable_are_positive_and_a_valley_needs_no_offset():
    def given(points):
        return [p for _, p in number_conditions(0, [1, 2, 3], points, 0)]

    assert given([0, 1, 2, 5]) == [1, 1, 3]
    assert given([5, 2, 1, 0]) == [3, 1, 1]
    assert given([2, 0, 0, 1]) == [2, 1]
    assert given([0, 2, 2, 1]) == [2, -1]


def test_the_decision_is_the_least_total_of_the_second_class():
    card = banded()
    rows = pd.DataFrame({"age": [70, 70, 50], "smoker": [0, 1, 1], "ward": ["b", "a", "b"]})
    assert card.score(rows).tolist() == [3, 6, 3]
    assert card.predict(rows).tolist() == ["yes", "yes", "yes"]
    low = rows.assign(age=[50, 20, 39])
    assert card.score(low).tolist() == [1, 3, 2]
    assert card.predict(low).tolist() == ["no", "yes", "no"]
    # risks are not bent to the decision
    np.testing.assert_allclose(card.predict_proba(rows)[0, 1], 1 / (1 + np.exp(2.0 - 2.1)))
    assert card.positive == "yes"


DESCRIBED = {
    "title": "Admission",
    "units": {"age": "years"},
    "risk_groups": [RiskGroup("low", 0), RiskGroup("high", 4)],
    "profile": [
        [[5, 1], [3, 2], [1, 2], [0, 0]],
        [[9, 1], [0, 4], [0, 0]],
        [[9, 5], [0, 0], [0, 0]],
    ],
    "provenance": {"rows": 14, "objective": "log_loss"},
}


def test_all_that_describes_a_card_is_saved_with_it(tmp_path):
    card, path = banded(**DESCRIBED), tmp_path / "a.card.json"
    save(card, path)
    assert json.loads(path.read_text("utf-8"))["version"] == 2
    again = load(path)
    assert again == card == banded()
    assert (again.title, again.units, again.risk_groups) == (
        card.title,
        card.units,
        card.risk_groups,
    )
    assert again.provenance == DESCRIBED["provenance"]
    assert all((one == two).all() for one, two in zip(again.profile, card.profile, strict=True))
    assert again.variables[0].unit == "years"
    assert again != Scorecard(
        *[
            getattr(card, n)
            for n in ("space", "classes", "conditions", "points", "offset", "slope", "intercept")
        ]
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"profile": [[[1, 2]]]}, "a count for each band and class"),
        ({"profile": [[[-1, 2]] * 4, [[1, 2]] * 3, [[1, 2]] * 3]}, "none below 0"),
        ({"profile": [[[1, 2]] * 4, [[1, 2]] * 3, [[1, 2]] * 3]}, "same rows for each variable"),
        (
            {"profile": [[[3, 3]] * 4, [[4, 4]] * 3, [[4, 4], [4, 4], [4, 4.001]]]},
            "same rows for each variable",
        ),
        ({"profile": [[[0, 0]] * 4, [[0, 0]] * 3, [[0, 0]] * 3]}, "same rows for each variable"),
        ({"units": {"height": "cm"}}, "units names 'height', which is not a column"),
        ({"risk_groups": [RiskGroup("a", 3), RiskGroup("b", 3)]}, "lowest total to the highest"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        banded(**changes)


def test_a_file_with_a_damaged_profile_is_refused(tmp_path):
    from steadytree.models.files import _hash

    path = tmp_path / "a.card.json"
    save(banded(**DESCRIBED), path)
    content = json.loads(path.read_text("utf-8"))
    content["card"]["profile"][0].pop()
    content["sha256"] = _hash(content["card"])
    path.write_text(json.dumps(content), "utf-8")
    with pytest.raises(TreeFileError, match="profile must hold a count for each band"):
        load(path)


def test_a_decision_and_an_event_are_for_two_classes():
    with pytest.raises(ValueError, match="decision is for two classes"):
        Scorecard(SPACE, [0, 1, 2], [], [], [0, 0, 0], decision=1)
    with pytest.raises(ValueError, match="not one event"):
        _ = Scorecard(SPACE, [0, 1, 2], [], [], [0, 0, 0]).positive


@pytest.mark.parametrize("n_categories", [7, 8, 9])
@pytest.mark.parametrize("n_bands", [2, 3])
def test_of_more_than_eight_categories_the_largest_band_is_any_other(n_categories, n_bands):
    points = [min(k, n_bands - 1) for k in range(n_categories)]
    space = FeatureSpace.declare(categories={"site": [f"s{k}" for k in range(n_categories)]})
    conditions, given = zip(*category_conditions(0, points, missing=0), strict=True)
    card = Scorecard(space, ["no", "yes"], conditions, given, 0)
    texts = card.variables[0].texts()
    listed = "any other" in texts
    assert listed == (n_categories > 8)
    if listed:
        sizes = [len(band.categories) for band in card.variables[0].bands]
        assert texts[int(np.argmax(sizes))] == "any other"


@pytest.mark.parametrize("n_categories", [8, 9])
@pytest.mark.parametrize("points", [(0, 2), (1, 2), (2, 1)])
@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("had_missing", [False, True])
def test_missing_values_have_a_line_unless_it_is_said_elsewhere(
    n_categories, points, missing, had_missing
):
    """The largest band and another one, on columns with and without missing training rows."""
    many, few = points
    categories = tuple(f"s{k}" for k in range(n_categories))
    column = Column("site", "categorical", categories=categories, missing=had_missing)
    given = [many] * (n_categories - 1) + [few]
    bands = (
        Band((many,), categories=tuple(range(n_categories - 1))),
        Band((few,), categories=(n_categories - 1,)),
        Band((missing,), is_missing=True),
    )
    variable = Variable(0, column, bands)
    lines = [text for text, _ in variable.listed()]
    others_differ = n_categories > 8 and missing != many
    if had_missing or others_differ:
        assert len(lines) == 3
    elif missing == 0:
        assert lines == variable.texts()[:2]
    elif missing in given:
        home = 0 if missing == many else 1
        expected = variable.texts()[:2]
        expected[home] += f", or {variable.texts()[2]}"
        assert lines == expected
    else:
        assert len(lines) == 3


@pytest.mark.parametrize("kind", ["binary", "integer", "numeric"])
def test_words_of_a_band_say_what_is_inside(kind):
    ends = [-1.0, 0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 12.125]
    column = Column("x", kind, 0.0, 1.0 if kind == "binary" else 20.0)
    for low in (-np.inf, *ends):
        for high in (*(end for end in ends if end > low), np.inf):
            text = Band((0,), low, high).text(column)
            has = [low <= value < high for value in (0, 1)]
            if kind == "binary" and has[0] != has[1]:
                assert text == ("yes" if has[1] else "no")
            elif kind != "binary" or not any(0 < end <= 1 for end in (low, high)):
                parts = [f"{end:g}" if end % 1 == 0 else repr(end) for end in (low, high)]
                expected = f"{parts[0]} to < {parts[1]}"
                expected = f"< {parts[1]}" if low == -np.inf else expected
                expected = f"≥ {parts[0]}" if high == np.inf else expected
                assert text == ("any" if text == "any" and low == -high else expected)
            else:  # nothing that the column can hold
                assert has == [False, False]


def test_names_with_commas_are_divided_by_semicolons():
    column = Column("site", "categorical", categories=("Ulm, north", "Ulm, south", "Bonn"))
    assert Band((1,), categories=(0, 1)).text(column) == "Ulm, north; Ulm, south"
    assert Band((1,), categories=(2,)).text(column) == "Bonn"
