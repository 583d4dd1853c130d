"""Labels as a user hands them over: checked, and found among known classes."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import column_or_1d

from steadytree.data.table import NO_VALUE, check_not_masked, quote, value_text

UNKNOWN = -1
CLOSE = 100_000  # range of whole numbers that are counted


def label_array(y: Any) -> NDArray[Any]:
    """Labels as an array of the type they have: whole numbers and bools do not stay objects.

    Nullable columns keep their type too, which scikit-learn would turn into float64.
    """
    labels = np.asarray(y)
    if labels.dtype != object:
        return labels
    kinds = {type(label) for label in labels.ravel().tolist()}
    for kind, dtype in ((bool, np.bool_), (int, np.int64)):
        if kinds == {kind}:
            with contextlib.suppress(OverflowError):
                return labels.astype(dtype)
    return labels


def class_indices(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """The classes in order, and which of them each row has.

    Whole numbers that lie close are counted, as sorting them would take as long as binning.
    """
    if labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < min(len(labels), CLOSE) and high <= np.iinfo(np.int64).max:
            shifted = labels.astype(np.int64) - low
            there = np.bincount(shifted) > 0
            classes = (np.flatnonzero(there) + low).astype(labels.dtype)
            return classes, (np.cumsum(there) - 1).astype(np.int32)[shifted]
    classes, found = np.unique(labels, return_inverse=True)
    return classes, found.astype(np.int32)


def check_labels(y: Any, n_rows: int) -> NDArray[Any]:
    """One label a row; refuses missing labels, mixed types and numbers that go on."""
    check_not_masked(y, "y")
    if not (isinstance(y, np.ndarray) and y.ndim == 1):
        y = column_or_1d(np.asarray(y) if hasattr(y, "dtype") else y, warn=True)
    y = label_array(y)
    if len(y) != n_rows:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {n_rows} rows, {len(y)} labels."
        )
    missing = missing_labels(y)
    if missing.any():
        raise ValueError(
            f"Input y contains NaN. {missing.sum()} label(s) are missing, the first in row "
            f"{int(missing.argmax())}: drop those rows or label them."
        )
    if y.dtype == object and len({isinstance(label, str) for label in y.tolist()}) > 1:
        raise TypeError("y mixes text and numbers as labels: turn all of them into text.")
    shortened = (
        [label for label in y.tolist() if str(label)[-1:] == "\0"] if y.dtype == object else []
    )
    if shortened:
        raise ValueError(
            f"label {shortened[0]!r} ends in a NUL sign, which numpy drops: rename it."
        )
    if y.dtype.kind == "f" and np.isinf(y).any():
        what = "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input y contains {what}. y must hold class labels.")
    if y.dtype.kind == "f" and (y != np.floor(y)).any():
        raise ValueError(
            "Unknown label type: continuous. y holds fractions, which are not class labels: "
            "cut it into classes, or use a regression method."
        )
    return y


def missing_labels(y: NDArray[Any]) -> NDArray[np.bool_]:
    """Flag the labels that are None, NaN or the missing value of a frame."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind in "biuSU":
        return np.zeros(len(y), bool)
    return np.array([v is None or type(v).__name__ in NO_VALUE or v != v for v in y.tolist()], bool)


def match_labels(labels: Sequence[Any], known: Sequence[Any]) -> list[int]:
    """Index of each label among known ones, UNKNOWN (-1) where it is none of them.

    Labels are compared as text where none fits as it is: a file in which one label is text gives
    the numbers beside it as text too.
    """
    if not set(labels) & set(known):
        labels, known = ([value_text(label) for label in each] for each in (labels, known))
    index_of = {label: index for index, label in enumerate(known)}
    return [index_of.get(label, UNKNOWN) for label in labels]


def unite_classes(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """All classes of an old tree and of new rows, sorted; old ones in another order keep theirs.

    Which class wins a tie is a matter of order, so the old tree goes on to decide as before.
    """
    known, given = old.tolist(), new.tolist()
    kinds = {isinstance(label, str) for label in (*known, *given)}
    if len(kinds) > 1:
        raise ValueError(
            f"the tree in use answers {quote(known)}, y holds {quote(given)}, and one of them is "
            "text, the other numbers: use one form for all labels."
        )
    added = sorted(set(given) - set(known))
    united = [*known, *added] if known != sorted(known) else sorted([*known, *added])
    return np.array(united, dtype=np.result_type(old, new))


def labels_like(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Labels as text where the classes are text and the labels are not."""
    if isinstance(classes.tolist()[0], str) and y.dtype.kind in "biuf":
        return np.array([value_text(label) for label in y.tolist()])
    return y


def stratified_folds(
    labels: NDArray[Any], n_folds: int, seed: int | None = None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Training and validation rows by fold, as scikit-learn's StratifiedKFold makes them.

    Without a seed the rows keep their order. scikit-learn's own comes with all its metrics and
    searches, half a second to load.
    """
    _, first, index = np.unique(labels, return_index=True, return_inverse=True)
    in_order = np.argsort(np.argsort(first))[index.ravel()]  # classes by their first row
    held = np.empty(len(labels), np.int64)
    shares = np.sort(in_order)
    random = check_random_state(seed)
    for label in range(len(first)):
        counts = [np.count_nonzero(shares[fold::n_folds] == label) for fold in range(n_folds)]
        folds = np.repeat(np.arange(n_folds), counts)
        if seed is not None:
            random.shuffle(folds)
        held[in_order == label] = folds
    for fold in range(n_folds):
        yield np.flatnonzero(held != fold), np.flatnonzero(held == fold)
