"""PrivateTreeClassifier under scikit-learn's own checks of estimators.

The checks bring data of their own and no schema, which a private fit refuses by design. So a twin
that declares a schema from the data it is given, which nobody may do with private data, stands in;
all else is the learner itself.
"""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from steadytree.data.schema import Schema
from steadytree.data.table import Table
from steadytree.privacy.private_tree import PrivateTreeClassifier

MOST_CLASSES = 10


class DeclaredFromData(PrivateTreeClassifier):
    """Reads its schema off the data: for these checks only."""

    def fit(self, X, y):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        self._declared = declare(X, y)
        return super().fit(X, y)

    def _validate(self):
        self.schema, given = self._declared, self.schema
        try:
            return super()._validate()
        finally:
            self.schema = given


def declare(X, y):
    table, classes = Table.read(X), np.unique(np.asarray(y))[:MOST_CLASSES]
    names = table.names or [f"x{place}" for place in range(len(table.columns))]
    bounds, categories = {}, {}
    for name, column in zip(names, table.columns, strict=True):
        if np.asarray(column).dtype.kind in "biuf":
            low, high = float(np.nanmin(column)), float(np.nanmax(column))
            bounds[name] = (low, max(high, low + 1.0))
        else:
            categories[name] = sorted({str(value) for value in column})
    listed = classes.tolist()
    spare = [] if len(listed) > 1 else ["none"] if isinstance(listed[0], str) else [listed[0] + 1]
    return Schema(bounds, categories, [*listed, *spare])


UNTOLD = "no value of a row is refused, so that no error tells of one"
NOT_MEANT = {
    "check_estimators_empty_data_messages": "no rows are a neighbour of one row: not told apart",
    "check_classifiers_one_label": "a leaf that no row reaches draws its label by chance",
    "check_classifiers_regression_target": UNTOLD,
    "check_supervised_y_2d": UNTOLD,
}


@pytest.mark.slow
@parametrize_with_checks(
    [DeclaredFromData(epsilon=50.0, testing_seed=0)], expected_failed_checks=lambda _: NOT_MEANT
)
def test_follows_the_sklearn_contract(estimator, check):
    check(estimator)


def test_without_a_schema_no_fit_starts():
    with pytest.raises(TypeError, match="schema must be a Schema"):
        PrivateTreeClassifier(testing_seed=0).fit([[0.0], [1.0]], [0, 1])
