"""Suitable: telling a learner that cannot take some rows from a learner that fails on them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from steadytree.core.refusal import UnsuitableDataError
from steadytree.core.space import FeatureSpace


def fit_or_refuse(learner: Any, X: Any, labels: NDArray[Any]) -> Any:
    """Fit; an error is a refusal where the learner's tags say that it does not take such rows."""
    try:
        return learner.fit(X, labels)
    except ValueError as error:
        if not _takes(learner, X, labels):
            raise UnsuitableDataError(str(error)) from error
        raise


def _takes(learner: Any, X: Any, labels: NDArray[Any]) -> bool:
    """Whether a learner's tags allow for the text, missing values and classes that there are."""
    if not hasattr(learner, "__sklearn_tags__"):
        return True
    tags, space = get_tags(learner), FeatureSpace.observe(X)
    if space.categorical.any() and not (tags.input_tags.string or tags.input_tags.categorical):
        return False
    if any(column.missing for column in space) and not tags.input_tags.allow_nan:
        return False
    about_classes = tags.classifier_tags
    return about_classes is None or about_classes.multi_class or len(np.unique(labels)) <= 2
