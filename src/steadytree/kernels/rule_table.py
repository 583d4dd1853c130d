"""Every question a grower may ask, as arrays that kernels read."""

from typing import NamedTuple

import numpy as np


class RuleTable(NamedTuple):
    """Bins of each feature, and the rules between them, feature by feature, by rising bin.

    Rule r sends left what has `code <= bin[r]`, or `code == bin[r]` where the feature is by_value
    (categorical); bin -1 sends left whatever is there. Missing goes left where missing_left[r].
    It stands for the thresholds first[r]..last[r], which divide the data at hand alike.
    """

    bin_offsets: np.ndarray  # (p + 1,) int64: bins of feature j, the missing one last if there
    bin_sizes: np.ndarray  # (p,) int64: bins of feature j without the missing one
    by_value: np.ndarray  # (p,) bool
    offsets: np.ndarray  # (p + 1,) int64: rules of feature j
    feature: np.ndarray  # (n_rules,) int64
    bin: np.ndarray  # (n_rules,) int64
    missing_left: np.ndarray  # (n_rules,) bool
    first: np.ndarray  # (n_rules,) int64
    last: np.ndarray  # (n_rules,) int64
    candidate_offsets: np.ndarray  # (p + 1,) int64: rules of feature j before merging
