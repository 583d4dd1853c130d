"""Trees in ``*.tree.json`` files: readable, hashed, written whole or not at all."""

import hashlib
import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from steadytree._base.exceptions import TreeFileError
from steadytree._base.files import write_text_atomically
from steadytree.data.readers import CSV_ENDINGS, PARQUET_ENDINGS
from steadytree.models.documents import card_from_dict, card_to_dict, tree_from_dict, tree_to_dict
from steadytree.models.scorecard import Scorecard, as_card
from steadytree.models.sklearn import as_tree

CARD_FORMAT = "steadytree-card"
CARD_VERSION = 1


def save_card(card: Scorecard, path: str | PathLike[str]) -> None:
    """Write a card to a file, by custom named ``*.card.json``; `load` reads it back.

    Examples
    --------
    >>> import tempfile
    >>> from steadytree.models.scorecard import Condition
    >>> from steadytree.data.feature_space import FeatureSpace
    >>> from steadytree.models.files import load
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_card(card, f"{folder}/q2.card.json")
    ...     load(f"{folder}/q2.card.json") == card
    True
    """
    content = card_to_dict(card)
    whole = {
        "format": CARD_FORMAT,
        "version": CARD_VERSION,
        "sha256": card_hash(card),
        "card": content,
    }
    text = json.dumps(whole, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{error.object[error.start : error.end]!r} in a name or label cannot be written as "
            "text: rename it."
        ) from None
    write_text_atomically(path, text)


def card_hash(card: Scorecard) -> str:
    """SHA-256 of a card, as it stands in the file that `save_card` writes."""
    return _hash(card_to_dict(card))


def card_of_file(content: dict[str, Any]) -> Scorecard:
    """The card in what a file holds; a ValueError says what is wrong with it."""
    if (
        set(content) != {"format", "version", "sha256", "card"}
        or content["version"] != CARD_VERSION
    ):
        raise ValueError(f"must hold format, version {CARD_VERSION}, sha256 and card, and no more")
    if _hash(content["card"]) != content["sha256"]:
        raise ValueError("the card does not fit its hash, so it was changed after saving")
    return card_from_dict(content["card"])


FORMAT = "steadytree-tree"
VERSION = 1
MAX_BYTES = 64 * 2**20
KEYS = ("format", "version", "sha256", "tree")


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a tree to a file, by custom named ``*.tree.json``; a card as ``*.card.json``.

    The file is written beside its final place and then moved there, so a failure leaves what was
    there before. It holds numbers and text only, each number exactly.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner of steadytree, or fitted scikit-learn tree classifier
    path : str or path-like

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/q2.tree.json")
    ...     load(f"{folder}/q2.tree.json") == as_tree(model)
    True
    """
    card = as_card(model)
    if card is not None:
        save_card(card, path)
        return
    content = tree_to_dict(as_tree(model))
    text = _layout(content)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{error.object[error.start : error.end]!r} in a name or label cannot be written as "
            "text: rename it."
        ) from None
    if len(data) > MAX_BYTES:
        raise ValueError(
            f"the tree needs {len(data) >> 20:,} MB, more than the {MAX_BYTES >> 20} MB of a tree "
            "file: prune it first."
        )
    write_text_atomically(path, text)


def load(path: str | PathLike[str]) -> Any:
    """Read a tree or card that `save` wrote; runs no code, whatever the file holds.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    model : Tree or Scorecard

    Raises
    ------
    TreeFileError
        The file holds no tree, was changed since it was written, or comes from a newer version.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    content = _parse(path, _read(path))
    if isinstance(content, dict) and content.get("format") == CARD_FORMAT:
        try:
            return card_of_file(content)
        except (ValueError, RecursionError) as error:
            raise TreeFileError(f"{path}: {_sentence(error)} {_SAVE_AGAIN}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise TreeFileError(
            f"{path}: no steadytree tree file. Pass a file that save() wrote, as in 'q2.tree.json'."
        )
    version = content.get("version")
    if type(version) is not int or version < 1:
        raise TreeFileError(f"{path}: version must be a whole number. {_SAVE_AGAIN}")
    if version > VERSION:
        raise TreeFileError(
            f"{path}: written in version {version} of the format, and this steadytree reads up to "
            f"{VERSION}: upgrade it with 'pip install -U steadytree'."
        )
    if set(content) != set(KEYS):
        raise TreeFileError(f"{path}: must hold {', '.join(KEYS)} and no more. {_SAVE_AGAIN}")
    try:
        if _hash(content["tree"]) != content["sha256"]:
            raise ValueError("the tree does not fit its hash, so it was changed after saving")
        return tree_from_dict(content["tree"])
    except (ValueError, RecursionError) as error:
        raise TreeFileError(f"{path}: {_sentence(error)} {_SAVE_AGAIN}") from None


def tree_hash(model: Any) -> str:
    """SHA-256 of a tree, as it stands in the file that `save` writes.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> tree_hash(model) == tree_hash(as_tree(model))
    True
    """
    return _hash(tree_to_dict(as_tree(model)))


_SAVE_AGAIN = "Save the tree again, or take a copy that is whole."


# ---- writing ----
def _hash(content: Any) -> str:
    """SHA-256 of the content written in one fixed way: sorted, without spaces, in ASCII."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def _layout(content: dict[str, Any]) -> str:
    """The file's text: one line for each feature and node."""

    def line(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)

    def lines(values: Iterable[Any]) -> str:
        return "[\n" + ",\n".join(f"      {line(value)}" for value in values) + "\n    ]"

    parts = [
        f'    "{key}": {lines(value) if key in ("features", "nodes") else line(value)}'
        for key, value in content.items()
    ]
    tree = "{\n" + ",\n".join(parts) + "\n  }"
    return (
        f'{{\n  "format": "{FORMAT}",\n  "version": {VERSION},\n'
        f'  "sha256": "{_hash(content)}",\n  "tree": {tree}\n}}\n'
    )


# ---- reading ----
def _read(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():
            raise TreeFileError(f"{path}: not a file. Pass a file that save() wrote.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        what = f"{error.strerror}, so no tree was read; check the path"
        raise type(error)(error.errno, what, str(path)) from None
    if len(data) > MAX_BYTES:
        raise TreeFileError(
            f"{path}: larger than the {MAX_BYTES >> 20} MB of a tree file. Pass a file that "
            "save() wrote."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _no_tree(path, "not text. Pass a file that save() wrote.") from None


def _parse(path: Path, text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("a key stands twice in one object")
        return content

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        what = f"not whole JSON ({error.msg.lower()} at {where})"
    except RecursionError:
        what = "nested too deeply for a tree file"
    except ValueError as error:
        what = f"not strict JSON ({error})"
    raise _no_tree(path, f"{what}. {_SAVE_AGAIN}")


def _no_tree(path: Path, what: str) -> TreeFileError:
    """What is wrong; a file of rows in a tree's place is the most likely mistake of all."""
    if path.suffix.lower() in CSV_ENDINGS + PARQUET_ENDINGS:
        what = "a data file, where a saved tree is expected. Pass one, as in 'q2.tree.json'."
    return TreeFileError(f"{path}: {what}")


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply for a tree file."
    return str(error).rstrip(".") + "."
