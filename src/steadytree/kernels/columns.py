"""One pass over a matrix for what a feature space must know of each column."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def summarise_columns(X):
    """Return per column: least and largest finite value, missing count, infinite count, whole.

    X (n, p) float. Columns without a finite value have low = inf, high = -inf. `whole` is True
    when every finite value is an integer.
    """
    n, p = X.shape
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    missing, infinite = np.zeros(p, dtype=np.int64), np.zeros(p, dtype=np.int64)
    whole = np.ones(p, dtype=np.bool_)
    for row in range(n):
        for column in range(p):
            x = np.float64(X[row, column])
            if np.isnan(x):
                missing[column] += 1
            elif np.isinf(x):
                infinite[column] += 1
            else:
                low[column] = min(low[column], x)
                high[column] = max(high[column], x)
                if whole[column] and x != np.floor(x):
                    whole[column] = False
    return low, high, missing, infinite, whole
