"""Strict JSON documents: no field unknown, missing or repeated, and one text for hashes."""

import json
import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
LONGEST_ERROR = 200  # characters; a damaged file may hold names of any length
TYPE_NAMES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "an object",
    "str": "text",
}


class Document(msgspec.Struct, forbid_unknown_fields=True):
    """Base of all documents: fields are written in their order, unset ones are left out."""


def parse_json(text: str | bytes) -> Any:
    """Parse JSON without NaN, infinity or repeated keys; a ValueError says what is wrong."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"not strict JSON ({error})") from None


def canonical_json(content: Any) -> bytes:
    """The text that hashes of files are taken of: sorted keys, no spaces, ASCII, finite numbers.

    Written by the standard library: msgspec writes 1e-7 where hashes were taken of 1e-07.
    """
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def convert(content: Any, document: type[T]) -> T:
    """Plain values as a document; a ValueError names the path of the first fault."""
    try:
        return msgspec.convert(content, document)
    except msgspec.ValidationError as error:
        raise ValueError(_explain(str(error))) from None


def _explain(text: str) -> str:
    """msgspec's message in one line, its path (``$.nodes[3].left``) first."""
    fault, _, path = text.rpartition(" - at `")
    fault, path = (fault, path.strip("`$.")) if fault else (text, "")
    if fault.startswith("Expected"):
        fault = re.sub(r"`([^`]+)`", lambda found: _type_names(found[1]), fault)
    fault = " ".join((fault[:1].lower() + fault[1:]).replace("`", "'").split())[:LONGEST_ERROR]
    return f"{path}: {fault}" if path else fault


def _type_names(union: str) -> str:
    return " or ".join(TYPE_NAMES.get(name, name) for name in union.split(" | "))


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not valid JSON")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key appears twice in one object")
    return content
