"""Masked sums: integer vectors of several members, added up so that nobody sees one of them.

The protocol of Bonawitz et al. (Practical secure aggregation for privacy-preserving machine
learning, 2017), with fresh keys for each sum:

1. Each member makes two X25519 keys and signs them, together with what is summed.
2. Each member checks all signatures, makes a secret seed, and sends shares of the seed and of its
   masking key to all others, encrypted for each (Shamir: `threshold` shares give the secret,
   fewer say nothing about it).
3. Each member sends its vector plus a stream of ChaCha20 from its seed, plus or minus a stream for
   each pair of members, which cancel in the sum.
4. Each member is told who sent a vector, and answers once: of those its shares of their seeds, of
   the others its shares of their masking keys. So the streams that did not cancel are removed.

Why a lying coordinator learns no more than one sum of at least `threshold` vectors. Both secrets of
a member uncover its vector, one does not. A member gives a share of one of them only, once. To get
`threshold` shares of both, with c members that lie too, n - c + 2 c >= 2 threshold members are
needed; so n + c < 2 threshold excludes it, whatever different members are told. Keys of somebody
else are refused by their signature; other lists of keys, or another sum, give streams that do not
cancel, because the streams depend on all that was signed.
"""

import hashlib
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from steadytree._base.documents import canonical_json
from steadytree._base.exceptions import RefusedError
from steadytree._base.optional import require
from steadytree.federated.keys import read_key
from steadytree.federated.messages import Request

BITS = 40
MODULUS = 2**BITS  # of the numbers of a vector
PRIME = 2**521 - 1  # of the shares; secrets have 256 bits
SHARE = 66  # bytes of a share
KEY, SIGNATURE, TAG = 32, 64, 16
ADVERTISED, ENCRYPTED = 2 * KEY + SIGNATURE, 2 * SHARE + TAG  # bytes of a message
PURPOSE = "secure sums"
Vector = NDArray[np.int64]


def _crypto(name: str) -> Any:
    return require(f"cryptography.hazmat.primitives.{name}", "private", PURPOSE)


@dataclass(frozen=True)
class SumKeys:
    """A member's long-lived signing key (Ed25519), and the public signing keys of the others."""

    own: Any
    others: Mapping[str, Any]

    @classmethod
    def load(cls, folder: Path, name: str) -> "SumKeys":
        """From a holder's folder of keys: sign.key, and NAME.sign.pub of each other holder."""
        paths = {path.name.removesuffix(".sign.pub"): path for path in folder.glob("*.sign.pub")}
        others = {each: path for each, path in paths.items() if each not in ("coordinator", name)}
        if not others or not (folder / "sign.key").is_file():
            raise ValueError(
                f"{str(folder)!r} must hold sign.key and NAME.sign.pub of each other holder, for "
                "secure sums: make them with `steadytree private keys`, and ask for the others'."
            )
        known = {each: read_key(path, public=True) for each, path in others.items()}
        return cls(read_key(folder / "sign.key"), known)


@dataclass
class Member:
    """One member's side of one sum; each step is taken once, in order."""

    name: str
    keys: SumKeys
    context: bytes  # digest of what is summed, the same for all members
    threshold: int
    _step: int = 0
    _secrets: dict[str, Any] = field(default_factory=dict)
    _known: dict[str, bytes] = field(default_factory=dict)  # advertised keys by member
    _shares: dict[str, tuple[int, int]] = field(default_factory=dict)  # of seed and key, by member

    def advertise(self) -> bytes:
        """Public keys for shares and for masks, signed."""
        self._take(1)
        private = _crypto("asymmetric.x25519").X25519PrivateKey
        self._secrets = {"shares": private.generate(), "masks": private.generate()}
        public = b"".join(_raw(self._secrets[which].public_key()) for which in ("shares", "masks"))
        return public + bytes(self.keys.own.sign(_signed(self.name, self.context, public)))

    def share(self, advertised: Mapping[str, bytes]) -> dict[str, bytes]:
        """Shares of both secrets for each member, encrypted for it; needs all members' keys."""
        self._take(2)
        if len(advertised) < self.threshold or self.name not in advertised:
            raise RefusedError(f"a secure sum needs {self.threshold} members, and this one.")
        for name, message in advertised.items():
            self._check(name, message)
        self._known = dict(sorted(advertised.items()))
        self._secrets["seed"] = secrets.token_bytes(KEY)
        seed = int.from_bytes(self._secrets["seed"], "big")
        key = int.from_bytes(_raw_private(self._secrets["masks"]), "big")
        n = len(self._known)
        seeds, keys = (split_secret(each, n, self.threshold) for each in (seed, key))
        found = {}
        for name, one, other in zip(self._known, seeds, keys, strict=True):
            if name == self.name:
                self._shares[name] = one, other
                continue
            plain = one.to_bytes(SHARE, "big") + other.to_bytes(SHARE, "big")
            found[name] = self._cipher(name).encrypt(_nonce(self.name, name), plain, None)
        return found

    def mask(self, vector: Vector, received: Mapping[str, bytes]) -> Vector:
        """The vector behind its masks; `received` are the others' encrypted shares."""
        self._take(3)
        if len(received) + 1 < self.threshold or not set(received) < set(self._known):
            raise RefusedError(f"shares of fewer than {self.threshold} members, or of strangers.")
        error = require("cryptography.exceptions", "private", PURPOSE).InvalidTag
        for name, message in received.items():
            try:
                plain = self._cipher(name).decrypt(_nonce(name, self.name), message, None)
            except error:
                raise RefusedError("shares were altered, or are for another sum.") from None
            halves = plain[:SHARE], plain[SHARE:]
            first, second = (int.from_bytes(half, "big") for half in halves)
            self._shares[name] = first, second
        size = len(vector)
        total = np.asarray(vector, np.int64) % MODULUS
        total = total + stream(self._secrets["seed"], size)
        for name in received:
            own = self._secrets["masks"].exchange(_public(self._known[name][KEY : 2 * KEY]))
            total += pair_sign(self.name, name) * stream(_derive(own, self._transcript), size)
        return total % MODULUS

    def unmask(self, survivors: Iterable[str]) -> dict[str, int]:
        """Shares of the seeds of those who sent a vector, and of the masking keys of the others."""
        self._take(4)
        listed = set(survivors)
        if len(listed) < self.threshold or not listed <= set(self._shares):
            raise RefusedError(f"a sum of fewer than {self.threshold} members, or of strangers.")
        return {name: pair[name not in listed] for name, pair in self._shares.items()}

    # ---- checks ----
    def _take(self, step: int) -> None:
        if self._step != step - 1:
            raise RefusedError("a step of a secure sum is taken once, in order.")
        self._step = step

    def _check(self, name: str, message: bytes) -> None:
        public, signature = message[: 2 * KEY], message[2 * KEY :]
        signer = self.keys.own.public_key() if name == self.name else self.keys.others.get(name)
        if signer is None:
            raise RefusedError("a member of the secure sum is not known here.")
        try:
            signer.verify(signature, _signed(name, self.context, public))
        except require("cryptography.exceptions", "private", PURPOSE).InvalidSignature:
            raise RefusedError("keys of a secure sum bear a wrong signature.") from None

    @property
    def _transcript(self) -> bytes:
        return transcript(self.context, self._known)

    def _cipher(self, name: str) -> Any:
        aead = require("cryptography.hazmat.primitives.ciphers.aead", "private", PURPOSE)
        shared = self._secrets["shares"].exchange(_public(self._known[name][:KEY]))
        return aead.ChaCha20Poly1305(_derive(shared, b"shares" + self._transcript))


class SumSide:
    """A holder's side of all sums that it takes part in, step by step."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.keys: SumKeys | None = None  # without keys every sum is refused
        self._members: dict[tuple[str, int], Member] = {}

    def check(self, request: Request) -> None:
        """Refuse a sum that this holder cannot trust, from public numbers alone."""
        how = request.sum
        if self.keys is None:
            raise RefusedError("this holder has no keys for secure sums.")
        if how is UNSET or not how.honest < how.minimum:
            raise RefusedError("a secure sum needs fewer honest holders than its minimum.")
        if how.minimum + how.honest <= len(self.keys.others) + 1:
            n = len(self.keys.others) + 1
            raise RefusedError(f"minimum and honest of a secure sum must exceed {n} together.")
        if (how.step == "keys") != (how.first == request.round):
            raise RefusedError("a secure sum begins with its keys.")

    def take(self, request: Request, private: bool, vector: Callable[[], Vector]) -> Vector:
        """The numbers of one step; `vector` returns the counts with this holder's noise."""
        how = request.sum
        if how is UNSET or self.keys is None:
            raise RefusedError("this holder has no keys for secure sums.")
        name = request.session, how.first
        if how.step == "keys":
            self._members = {key: one for key, one in self._members.items() if key[0] != name[0]}
            context = sum_context(request, private)
            self._members[name] = Member(self.name, self.keys, context, how.minimum)
            return to_integers(self._members[name].advertise())
        member = self._members.get(name)
        if member is None or member.context != sum_context(request, private):
            raise RefusedError("the secure sum is not the one that was begun.")
        if how.step == "unmask":
            found = member.unmask(how.parts)
            shares = (found[each].to_bytes(SHARE, "big") for each in sorted(found))
            return to_integers(b"".join(shares))
        parts = {each: _from_hex(text) for each, text in how.parts.items()}
        if how.step == "shares":
            encrypted = member.share(parts)
            return to_integers(b"".join(encrypted[each] for each in sorted(encrypted)))
        return member.mask(vector(), parts)


def sum_context(request: Request, private: bool) -> bytes:
    """Digest of what is summed and how: all holders must be asked for the same."""
    how = msgspec.to_builtins(request.sum)
    fixed = [how[key] for key in ("first", "what", "rho", "minimum", "honest")]
    about = [request.session, request.schema, request.n_bins, request.trees, request.epsilon]
    return hashlib.sha256(canonical_json([*about, *fixed, private])).digest()


def to_integers(content: bytes) -> Vector:
    """Bytes as numbers of an answer."""
    return np.frombuffer(content, np.uint8).astype(np.int64)


def to_bytes(numbers: Vector) -> bytes:
    """The bytes that `to_integers` was given; other numbers are refused."""
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < 256:
        raise RefusedError("a step of a secure sum holds numbers that are not bytes.")
    return numbers.astype(np.uint8).tobytes()


def _from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise RefusedError("parts of a secure sum must be hexadecimal.") from None


# ---- the coordinator's side ----
def unmasked_sum(
    masked: Mapping[str, Vector],
    revealed: Mapping[str, Mapping[str, int]],
    advertised: Mapping[str, bytes],
    members: Iterable[str],
    context: bytes,
    threshold: int,
) -> Vector:
    """The sum of the vectors of all who sent one, as numbers around 0.

    `revealed` are the shares of step 4 by who sent them, `advertised` the keys of step 1, and
    `members` those who took step 2: masks of the others were never added.
    """
    positions = {name: position for position, name in enumerate(sorted(advertised), 1)}
    size = len(next(iter(masked.values())))
    total = np.zeros(size, np.int64)
    for vector in masked.values():
        total = (total + vector) % MODULUS
    for name in members:
        shares = {positions[who]: given[name] for who, given in revealed.items() if name in given}
        secret = join_shares(shares, threshold).to_bytes(KEY, "big")
        if name in masked:
            total -= stream(secret, size)
            continue
        private = _crypto("asymmetric.x25519").X25519PrivateKey.from_private_bytes(secret)
        if _raw(private.public_key()) != advertised[name][KEY : 2 * KEY]:
            raise RefusedError("shares of a missing member's key do not fit together.")
        for other in masked:
            shared = private.exchange(_public(advertised[other][KEY : 2 * KEY]))
            key = _derive(shared, transcript(context, advertised))
            total -= pair_sign(other, name) * stream(key, size)
    total %= MODULUS
    return np.where(total >= MODULUS // 2, total - MODULUS, total)


# ---- Shamir's shares ----
def split_secret(secret: int, n: int, threshold: int) -> list[int]:
    """Shares 1 to n of a secret: values of a random polynomial of degree threshold - 1."""
    coefficients = [secret, *(secrets.randbelow(PRIME) for _ in range(threshold - 1))]
    found = []
    for position in range(1, n + 1):
        value = 0
        for coefficient in reversed(coefficients):
            value = (value * position + coefficient) % PRIME
        found.append(value)
    return found


def join_shares(shares: Mapping[int, int], threshold: int) -> int:
    """The secret, from at least `threshold` shares by their positions; all must fit together."""
    if len(shares) < threshold:
        raise RefusedError(f"a secret needs {threshold} shares, got {len(shares)}.")
    used = dict(sorted(shares.items())[:threshold])
    for position, value in shares.items():
        if _at(used, position) != value:
            raise RefusedError("shares of a secret do not fit together.")
    secret = _at(used, 0)
    if secret >= 2 ** (8 * KEY):
        raise RefusedError("shares of a secret do not fit together.")
    return secret


def _at(shares: Mapping[int, int], position: int) -> int:
    """The polynomial through the shares at a position, by Lagrange."""
    total = 0
    for own, value in shares.items():
        above = below = 1
        for other in shares:
            if other != own:
                above, below = above * (position - other) % PRIME, below * (own - other) % PRIME
        total += value * above * pow(below, -1, PRIME)
    return total % PRIME


# ---- streams and keys ----
def stream(key: bytes, size: int) -> Vector:
    """Numbers modulo MODULUS from a key's ChaCha20 stream; a key is used for one stream only."""
    ciphers = _crypto("ciphers")
    chacha = ciphers.Cipher(ciphers.algorithms.ChaCha20(key, bytes(16)), mode=None)
    content = chacha.encryptor().update(bytes(8 * size))
    return (np.frombuffer(content, "<u8") & np.uint64(MODULUS - 1)).astype(np.int64)


def pair_sign(own: str, other: str) -> int:
    """+1 for the first of two members, -1 for the second."""
    return 1 if own < other else -1


def transcript(context: bytes, advertised: Mapping[str, bytes]) -> bytes:
    """Digest of what is summed and of all members' keys."""
    listed = (name.encode() + b"=" + advertised[name] for name in sorted(advertised))
    return hashlib.sha256(context + b"".join(listed)).digest()


def _signed(name: str, context: bytes, public: bytes) -> bytes:
    return b"steadytree secure sum 1\0" + name.encode() + b"\0" + context + public


def _nonce(sender: str, receiver: str) -> bytes:
    """One message goes each way under a pair's key, so two nonces are enough."""
    return bytes([sender < receiver]) + bytes(11)


def _derive(shared: bytes, info: bytes) -> bytes:
    hkdf = _crypto("kdf.hkdf").HKDF(_crypto("hashes").SHA256(), KEY, salt=None, info=info)
    return bytes(hkdf.derive(shared))


def _public(content: bytes) -> Any:
    return _crypto("asymmetric.x25519").X25519PublicKey.from_public_bytes(content)


def _raw(public: Any) -> bytes:
    return bytes(public.public_bytes_raw())


def _raw_private(private: Any) -> bytes:
    return bytes(private.private_bytes_raw())
