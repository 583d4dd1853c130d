"""What the search for robust trees knows of the data, as arrays."""

from typing import Any, NamedTuple


class RobustTable(NamedTuple):
    """Rows and the questions that may be asked of them.

    `left_cost`, `right_cost` (n_tests, n): cost of being on either side of a test, 0 where a row is
    already; `on_left` (n_tests, n) is the side it is on. `feature` (n_tests,) and `left_bins`,
    `right_bins` (n_tests, n_bins): a test's column and which of its bins go where, the last bin
    being for missing values. `gone` (n_features, n):
    where a row lacks a value. `code` (n_tests, n): place of a row's cost of crossing a test in the
    test's list of such costs. `label`, `weight` (n,). `largest`: cost is the largest over columns,
    else their sum.
    """

    left_cost: Any
    right_cost: Any
    on_left: Any
    feature: Any
    left_bins: Any
    right_bins: Any
    gone: Any
    code: Any
    label: Any
    weight: Any
    n_classes: int
    largest: bool


class Cells(NamedTuple):
    """Ways in which the budget may be priced; one of them fits the worst perturbation.

    With a shared budget, losing weight w costs w times the row's cost, and the most weight that can
    be lost is the least over t >= 0 of ``budget * t + sum of weight * max(0, 1 - t * cost)``.
    A cell holds the t between two numbers: `offset` is the budget times the lower one, `slope` the
    upper one, so offset plus losses is never more than the truth. With a budget for each row there
    is one cell, and a row is lost where its cost is at most `limit`. With a shared one, costs above
    `limit` are as good as infinite.
    `cross` (n_tests, n_codes, n_cells) is the loss at each test's crossing costs.
    """

    offset: Any
    slope: Any
    cross: Any
    limit: float
    shared: bool
