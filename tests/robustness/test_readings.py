"""Amounts as people state them, in a column's units, and noise from repeated measurements."""

import numpy as np
import pandas as pd
import pytest

from steadytree.robustness.perturbation import NOISE_SHARE, Perturbation, usual_perturbation
from steadytree.robustness.readings import recognise_one_hot, usual_deviation, usual_range


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 90, n).astype(float),
            "bmi": rng.normal(25, 4, n).round(1),
            "smokes": rng.integers(0, 2, n),
            "job": rng.choice(["clerk", "miner"], n),
        }
    )


def test_shares_and_standard_deviations_become_units():
    X = people()
    noise = Perturbation(radius={"age": "5 %", "bmi": "0.5 sd", "job": 1}).scaled_to(X)
    trimmed = np.sort(X["age"])[5:-5]  # 2.5 % of 200 rows at each end
    assert noise.radius["age"] == pytest.approx(0.05 * (trimmed[-1] - trimmed[0]))
    assert noise.radius["bmi"] == pytest.approx(0.5 * X["bmi"].std(ddof=0))
    assert noise.radius["job"] == 1
    everything = Perturbation(radius="5%").scaled_to(X)
    assert set(everything.radius) == {"age", "bmi"}  # text and 0/1 columns stay
    assert everything.scaled_to(X[:5]) == everything  # in units, whatever the rows


@pytest.mark.parametrize("amount", ["5 %", "0.5 sd"])
@pytest.mark.parametrize("n", [6, 20, 200])
def test_one_mistyped_value_does_not_decide(amount, n):
    X = people(n)
    given = Perturbation(radius={"bmi": amount})
    before = given.scaled_to(X).radius["bmi"]
    X.loc[3, "bmi"] = 1e6
    after = given.scaled_to(X).radius["bmi"]
    assert 0 < after < 2.5 * before
    assert usual_perturbation(X).radius["bmi"] < NOISE_SHARE * 60


def test_ranges_of_few_equal_and_missing_values():
    assert usual_range(np.array([1.0, 4.0, np.nan])) == 3.0
    assert usual_range(np.array([np.nan])) == 0.0
    assert usual_range(np.array([0.0] * 98 + [1.0, 2.0])) == 1.0  # all but the greatest
    assert usual_deviation(np.array([np.nan])) == 0.0
    assert usual_deviation(np.array([0.0] * 9 + [1.0])) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"age": "five %"}, "radius of 'age' must be a number of units, a share"),
        ({"age": "5"}, "radius of 'age' must be a number of units"),
        ({"job": "5 %"}, "radius of 'job' is '5 %', but it holds categories"),
        ({"Age": "5 %"}, "radius names 'Age', but the columns are"),
    ],
)
def test_wrong_amounts_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Perturbation(radius=given).scaled_to(people())


def test_shares_need_rows_before_anything_is_certified():
    from steadytree.data.feature_space import FeatureSpace

    with pytest.raises(ValueError, match=r"say of which rows, such as perturbation.scaled_to"):
        Perturbation(radius="5 %").all_moves(FeatureSpace.observe(people()))


def test_one_hot_groups_are_recognised_by_name_and_rows():
    X = pd.get_dummies(people()[["job", "age"]]).assign(flag_a=1, flag_b=1, other_x=0)
    group = ("job_clerk", "job_miner")
    assert recognise_one_hot(X) == (group,)
    assert recognise_one_hot(X.rename(columns=lambda name: name.replace("_", "="))) == (
        ("job=clerk", "job=miner"),
    )
    noise = Perturbation(radius={"age": 1.0, "job_clerk": 1.0}, one_hot="auto")
    assert noise.relative_to_rows
    assert noise.scaled_to(X).one_hot == (group,)
    X.loc[0, "job_clerk"] = X.loc[0, "job_miner"] = True
    assert recognise_one_hot(X) == ()


def test_noise_from_repeated_measurements():
    rng = np.random.default_rng(0)
    true = np.repeat(rng.normal(80, 10, 40), 3)
    X = pd.DataFrame({"who": np.repeat(np.arange(40), 3), "pulse": true + rng.normal(size=120)})
    X["job"] = "clerk"
    noise = Perturbation.from_repeated(X, by="who", coverage=0.9)
    pairs = X["pulse"].to_numpy().reshape(40, 3)[:, :2]  # the third of each has no partner
    apart = np.sort(np.abs(np.diff(pairs, axis=1).ravel()))
    assert noise.radius == {"pulse": apart[int(np.ceil(41 * 0.9)) - 1], "job": 0.0}
    shuffled = X.sample(frac=1.0, random_state=0)
    assert set(Perturbation.from_repeated(shuffled, by="who", coverage=0.9).radius) == {
        "pulse",
        "job",
    }
    with pytest.raises(ValueError, match="no value of 'who' stands in two rows"):
        Perturbation.from_repeated(X.drop_duplicates("who"), by="who")
    with pytest.raises(ValueError, match="X lacks the column 'id'"):
        Perturbation.from_repeated(X, by="id")
