"""Signed files: letters that people can read, hold back, and carry by hand."""

import base64
import binascii
import datetime
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steadytree.core.atomic import write_text_atomically
from steadytree.core.extras import require
from steadytree.sources.letters import (
    LARGEST_REPLY,
    SIGNATURE,
    SIGNED,
    UnsignedError,
    envelope,
    only_once,
    write,
)
from steadytree.sources.parties import Transport

VERSION = 1
MOST_AHEAD = 300.0  # seconds that a file may seem to come from the future
PURPOSE = "signing files"


def write_signed(path: Path, content: dict[str, Any], key: Path) -> None:
    """Write a file that says when it was made, signed with an Ed25519 key."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    signed = {"steadytree file": VERSION, "made": now, **content}
    signature = _private(key).sign(write(signed))
    whole = {**signed, "signature": base64.b64encode(signature).decode()}
    write_text_atomically(path, json.dumps(whole, indent=2) + "\n")


def read_signed(path: Path, kind: str, key: Path) -> dict[str, Any]:
    """The content of a file, if the owner of the key wrote it, whole and of this kind."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}: check the path.")
    if path.stat().st_size > 2 * LARGEST_REPLY:
        raise ValueError(f"{str(path)!r} is too large to be a letter.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=only_once)
        signature = base64.b64decode(content.pop("signature"), validate=True)
        signed = write(content)
    except (ValueError, KeyError, AttributeError, TypeError, binascii.Error, RecursionError):
        raise ValueError(f"{str(path)!r} is no signed file of steadytree.") from None
    invalid = require("cryptography.exceptions", "private", PURPOSE).InvalidSignature
    try:
        _public(key).verify(signature, signed)
    except invalid:
        raise ValueError(
            f"{str(path)!r} was not signed by the owner of {key.name!r}, or was changed since: do "
            "not use it."
        ) from None
    if content.get("steadytree file") != VERSION or content.get("kind") != kind:
        raise ValueError(f"{str(path)!r} is no {kind}, or of another version.")
    _check_time(path, str(content.get("made")))
    return dict(content)


# ---- letters ----
def sign_letter(letter: bytes, holder: str, key: Path) -> bytes:
    """The signature of a letter to one holder: to nobody else is it worth anything."""
    signature: bytes = _private(key).sign(_to(holder) + letter)
    return signature


def letter_opener(key: Path, holder: str) -> Callable[[bytes], bytes]:
    """What opens letters that the owner of the key signed for this holder, and no others.

    The signature is checked on the bytes as they came, before anything in them is read.
    """
    public = _public(key)
    invalid = require("cryptography.exceptions", "private", PURPOSE).InvalidSignature

    def open_letter(letter: bytes) -> bytes:
        if not letter.startswith(SIGNED):
            raise UnsignedError("a letter is not signed.")
        start = len(SIGNED) + SIGNATURE
        try:
            public.verify(letter[len(SIGNED) : start], _to(holder) + letter[start:])
        except invalid:
            raise UnsignedError("a letter is signed by somebody else.") from None
        return letter[start:]

    return open_letter


class SignedLetters:
    """A transport whose letters are signed by the coordinator.

    Parameters
    ----------
    transport : Transport
    key : Path
        The coordinator's ``sign.key``.
    """

    def __init__(self, transport: Transport, key: Path) -> None:
        self._transport, self._key, self.names = transport, key, transport.names
        _private(key)

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Carry each letter in an envelope."""
        signed = {n: envelope(x, sign_letter(x, n, self._key)) for n, x in letters.items()}
        return self._transport.exchange(signed, seconds)


def _to(holder: str) -> bytes:
    return SIGNED + holder.encode() + b"\n"


def _check_time(path: Path, made: str) -> None:
    try:
        ahead = datetime.datetime.fromisoformat(made) - datetime.datetime.now(datetime.UTC)
    except (ValueError, TypeError):
        raise ValueError(f"{str(path)!r} does not say when it was made.") from None
    if ahead.total_seconds() > MOST_AHEAD:
        raise ValueError(
            f"{str(path)!r} was made {ahead.total_seconds():.0f} s from now: the clocks disagree, "
            "set them right."
        )


def _private(path: Path) -> Any:
    return _load(path, "load_pem_private_key", "Ed25519PrivateKey", None)


def _public(path: Path) -> Any:
    return _load(path, "load_ssh_public_key", "Ed25519PublicKey")


def _load(path: Path, function: str, kind: str, *more: Any) -> Any:
    form = require("cryptography.hazmat.primitives.serialization", "private", PURPOSE)
    curve = require("cryptography.hazmat.primitives.asymmetric.ed25519", "private", PURPOSE)
    if not path.is_file():
        raise FileNotFoundError(
            f"the key {str(path)!r} is missing: make it with `steadytree private keys`."
        )
    try:
        key = getattr(form, function)(path.read_bytes(), *more)
    except (ValueError, TypeError):
        key = None
    if not isinstance(key, getattr(curve, kind)):
        raise ValueError(f"{str(path)!r} is no key that signs files: name another.")
    return key
