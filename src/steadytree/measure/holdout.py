"""Hold rows out of fitting, so that a tree is judged on rows it has not seen."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.labels import label_array


def hold_out(y: Any, share: float = 0.3, seed: int = 0) -> NDArray[np.bool_]:
    """Flag the rows to hold out, the given share of every class, drawn with a seed.

    A class keeps at least one row for fitting, so one that has a single row is never held out.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    share : float, default=0.3
    seed : int, default=0

    Returns
    -------
    held : bool array of shape (n_rows,)

    Examples
    --------
    >>> held = hold_out(["a"] * 10 + ["b"] * 20)
    >>> int(held[:10].sum()), int(held[10:].sum())
    (3, 6)
    """
    if not 0 < share < 1:
        raise ValueError(f"share must be between 0 and 1, got {share}.")
    _, labels = np.unique(label_array(y), return_inverse=True)
    rng = np.random.default_rng(seed)
    held = np.zeros(len(labels), bool)
    for label in range(int(labels.max(initial=-1)) + 1):
        rows = rng.permutation(np.flatnonzero(labels == label))
        held[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return held
