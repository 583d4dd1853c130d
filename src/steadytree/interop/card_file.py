"""Cards in ``*.card.json`` files: readable, hashed, written whole or not at all."""

import json
from os import PathLike
from typing import Any

from steadytree.core.atomic import write_text_atomically
from steadytree.core.scorecard import Scorecard
from steadytree.interop.card_dict import card_from_dict, card_to_dict

FORMAT = "steadytree-card"
VERSION = 1


def save_card(card: Scorecard, path: str | PathLike[str]) -> None:
    """Write a card to a file, by custom named ``*.card.json``; `load` reads it back.

    Examples
    --------
    >>> import tempfile
    >>> from steadytree.core.condition import Condition
    >>> from steadytree.core.space import FeatureSpace
    >>> from steadytree.interop.tree_file import load
    >>> space = FeatureSpace.declare(bounds={"age": (18, 99)})
    >>> card = Scorecard(space, ["no", "yes"], [Condition(0, "at_least", 75)], [2], -1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_card(card, f"{folder}/q2.card.json")
    ...     load(f"{folder}/q2.card.json") == card
    True
    """
    content = card_to_dict(card)
    whole = {"format": FORMAT, "version": VERSION, "sha256": card_hash(card), "card": content}
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
    from steadytree.interop.tree_file import _hash

    return _hash(card_to_dict(card))


def card_of_file(content: dict[str, Any]) -> Scorecard:
    """The card in what a file holds; a ValueError says what is wrong with it."""
    from steadytree.interop.tree_file import _hash

    if set(content) != {"format", "version", "sha256", "card"} or content["version"] != VERSION:
        raise ValueError(f"must hold format, version {VERSION}, sha256 and card, and no more")
    if _hash(content["card"]) != content["sha256"]:
        raise ValueError("the card does not fit its hash, so it was changed after saving")
    return card_from_dict(content["card"])
