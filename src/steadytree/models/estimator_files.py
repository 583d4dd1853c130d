"""Fitted estimators of other packages in skops, pickle and joblib files."""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from steadytree._base.exceptions import TreeFileError
from steadytree._base.optional import require

PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib")
# hold numbers and settings alone and run nothing; not every version of skops trusts them. The
# nodes of a tree are checked after loading, since one beyond its end would crash the process.
HARMLESS = {
    "collections.OrderedDict",
    "numpy.dtype",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.tree._tree.Tree",
}
RISK = (
    "a pickle, and reading one can run any code: pass --trust (in Python, load(path, trust=True)) "
    "if you know who made it, or have it saved with skops"
)


def is_skops(path: Path) -> bool:
    """Whether a file is an archive that skops wrote."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "schema.json" in archive.namelist()


def is_pickle(path: Path, start: bytes) -> bool:
    """Whether a file is a pickle, by its first byte or its name; nothing of it is run."""
    return start[:1] == b"\x80" or path.suffix.lower() in PICKLE_ENDINGS


def read_skops(path: Path, trust: bool) -> Any:
    """The estimator of a skops file; types that skops does not trust are refused by name."""
    io = require("skops.io", extra="skops", purpose="reading a skops file")
    try:
        unknown = io.get_untrusted_types(file=path)
        refused = sorted(set(unknown) - HARMLESS)
        if refused and not trust:
            listed = ", ".join(refused)
            raise TreeFileError(
                f"{path}: holds types that are not trusted: {listed}. Nothing was loaded: pass "
                "--trust (in Python, load(path, trust=True)) if you know who made it."
            )
        found = _read(path, lambda: io.load(path, trusted=unknown))
        if not trust and not all(map(_is_sound, _trees_in(found))):
            raise TreeFileError(f"{path}: holds a tree whose nodes are damaged: save it again.")
        return found
    except TreeFileError:
        raise
    except Exception as error:  # whatever a damaged archive makes skops raise
        raise _unreadable(path, error) from None


def _trees_in(found: Any) -> list[Any]:
    """scikit-learn's trees anywhere inside an estimator."""
    trees, waiting, known = [], [found], set()
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple | set):
            waiting += one
        elif isinstance(one, np.ndarray):
            waiting += one.ravel().tolist() if one.dtype.hasobject else []
        elif hasattr(one, "children_left"):
            trees.append(one)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            waiting.append(vars(one))
    return trees


def _is_sound(tree: Any) -> bool:
    """Whether children come after their node and features exist, so that every walk ends."""
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    n, index = tree.node_count, np.arange(tree.node_count)
    inner = left != -1
    children = all(
        ((side > index) & (side < n))[inner].all() and (side[~inner] == -1).all()
        for side in (left, right)
    )
    known = (feature[inner] >= 0) & (feature[inner] < tree.n_features)
    return bool(n > 0 and len(left) == len(tree.value) == n and children and known.all())


def read_pickle(path: Path, trust: bool) -> Any:
    """The estimator of a pickle or joblib file; nothing is run unless the file is trusted."""
    if not trust:
        raise TreeFileError(f"{path}: {RISK}.")
    import joblib

    try:
        return _read(path, lambda: joblib.load(path))
    except TreeFileError:
        raise
    except Exception as error:  # a pickle may raise anything
        raise _unreadable(path, error) from None


def _read(path: Path, read: Any) -> Any:
    """What a file holds; another version of scikit-learn and what is no classifier are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", InconsistentVersionWarning)
        try:
            found = read()
        except InconsistentVersionWarning as warning:
            wrote, runs = warning.original_sklearn_version, warning.current_sklearn_version
            raise TreeFileError(
                f"{path}: fitted with scikit-learn {wrote}, and this is {runs}, which may predict "
                f"otherwise. Install scikit-learn {wrote}, or fit the model again."
            ) from None
    if isinstance(found, type) or not hasattr(found, "predict"):
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        raise TreeFileError(
            f"{path}: holds {kind}, not a fitted classifier. Save the fitted model itself."
        )
    return found


def _unreadable(path: Path, error: Exception) -> TreeFileError:
    if isinstance(error, ModuleNotFoundError):
        return TreeFileError(
            f"{path}: the model needs the package {error.name!r}, which is not installed: install "
            "it, in the version that the model was fitted with."
        )
    reason = " ".join(str(error).split())[:200]
    return TreeFileError(
        f"{path}: cannot be read ({type(error).__name__}: {reason}). Damaged, or written by other "
        "versions of its packages: save the model again."
    )
