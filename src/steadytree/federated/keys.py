"""Keys of a study: TLS certificates, keys of SuperNodes, keys that sign files."""

import contextlib
import datetime
import ipaddress
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from steadytree._base.optional import require

DAYS = 365
ISSUER = "steadytree study"
PURPOSE = "making keys"
RELAY, REVOKED = "relay", "revoked"  # folders of keys
PASSPHRASE = "STEADYTREE_PASSPHRASE"  # the variable with the passphrase of keys
USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def make_study_keys(
    folder: Path, holders: Iterable[str], hosts: Iterable[str], secret: bytes | None = None
) -> list[Path]:
    """Make all keys of a study: a folder for the coordinator, and one for each holder.

    `hosts` are names or addresses at which holders reach the coordinator. Existing folders are
    refused. With `secret` the keys that sign and that of the authority are encrypted. Returns the
    coordinator's folder, then those to hand to the holders.
    """
    names = list(holders)
    if "coordinator" in names:
        raise ValueError("no holder may be called 'coordinator'.")
    folders = [folder / name for name in ("coordinator", *names)]
    for each in folders:
        if each.exists():
            raise ValueError(f"{str(each)!r} exists: name another folder, so that no key is lost.")
    coordinator = folders[0]
    _serialization()  # an error if it is not installed, before a folder is created
    _make_folder(coordinator)
    certificate = _make_tls(coordinator, list(hosts), secret)
    signing, public = _make_signing_key(coordinator, secret), {}
    for each in folders[1:]:
        node, own = make_holder_keys(each, secret)
        public[each] = own
        (each / RELAY / "ca.crt").write_bytes(certificate)
        (each / "coordinator.sign.pub").write_bytes(signing)
        (coordinator / f"{each.name}.node.pub").write_bytes(node)
        (coordinator / f"{each.name}.sign.pub").write_bytes(own)
    for each in public:  # for secure sums, holders check each other's signatures
        for other in public.keys() - {each}:
            (each / f"{other.name}.sign.pub").write_bytes(public[other])
    return folders


def make_holder_keys(folder: Path, secret: bytes | None = None) -> tuple[bytes, bytes]:
    """A holder's own keys, made by the holder; returns the public parts.

    The key that signs is for the holder; the relay, which runs code that Flower ships, gets a
    folder of its own with the key of its node.
    """
    if folder.exists():
        raise ValueError(f"{str(folder)!r} exists: name another folder, so that no key is lost.")
    crypto = require("cryptography.hazmat.primitives.asymmetric.ec", "private", PURPOSE)
    _make_folder(folder)
    _make_folder(folder / RELAY)
    key = crypto.generate_private_key(crypto.SECP384R1())  # what SuperNodes sign with
    node = _write_pair(folder / RELAY, "node", key, "OpenSSH")
    return node, _make_signing_key(folder, secret)


def _make_tls(folder: Path, hosts: list[str], secret: bytes | None) -> bytes:
    """A certificate authority for the study, and the coordinator's certificate."""
    crypto = require("cryptography.hazmat.primitives.asymmetric.ec", "private", PURPOSE)
    root = crypto.generate_private_key(crypto.SECP256R1())
    authority = _certificate(root, ISSUER, root, None)
    _write_private(folder / "ca.key", root, secret=secret)
    (folder / "ca.crt").write_bytes(authority)
    _make_server(folder, hosts, root)
    return authority


def _make_server(folder: Path, hosts: list[str], root: Any) -> None:
    """The coordinator's certificate and its key; both are replaced as a whole."""
    crypto = require("cryptography.hazmat.primitives.asymmetric.ec", "private", PURPOSE)
    server = crypto.generate_private_key(crypto.SECP256R1())
    _write_private(folder / "server.key.new", server)
    (folder / "server.pem.new").write_bytes(_certificate(server, hosts[0], root, hosts))
    (folder / "server.key.new").replace(folder / "server.key")
    (folder / "server.pem.new").replace(folder / "server.pem")


def renew_certificate(folder: Path, hosts: list[str]) -> None:
    """A new key and certificate of the coordinator, by the same authority: holders keep theirs."""
    root = _read_private(folder / "ca.key")
    for name in ("server.key.new", "server.pem.new"):  # of an interrupted renewal
        (folder / name).unlink(missing_ok=True)
    _make_server(folder, hosts, root)


def revoke_holder(folder: Path, holder: str) -> list[Path]:
    """Move a holder's public keys out of use; returns where they are now."""
    found = [folder / f"{holder}.{kind}.pub" for kind in ("node", "sign")]
    found = [path for path in found if path.is_file()]
    if not found:
        raise ValueError(f"{holder!r} has no key here, or it was revoked before.")
    (folder / REVOKED).mkdir(mode=0o700, exist_ok=True)
    return [path.replace(folder / REVOKED / path.name) for path in found]


def _certificate(key: Any, name: str, issuer: Any, hosts: list[str] | None) -> bytes:
    x509 = require("cryptography.x509", "private", PURPOSE)
    hashes = require("cryptography.hazmat.primitives.hashes", "private", PURPOSE)
    now = datetime.datetime.now(datetime.UTC)
    is_root = hosts is None
    usage = dict.fromkeys(USAGES, False)
    usage |= {"key_cert_sign": True, "crl_sign": True} if is_root else {"digital_signature": True}
    builder = (
        x509.CertificateBuilder()
        .subject_name(_named(x509, name))
        .issuer_name(_named(x509, ISSUER))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=DAYS))
        .add_extension(x509.BasicConstraints(ca=is_root, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer.public_key()), critical=False
        )
    )
    if hosts is not None:
        listed = x509.SubjectAlternativeName([_alternative(x509, host) for host in hosts])
        builder = builder.add_extension(listed, critical=False)
    signed = builder.sign(issuer, hashes.SHA256())
    return signed.public_bytes(_serialization().Encoding.PEM)


def _named(x509: Any, name: str) -> Any:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])


def _alternative(x509: Any, host: str) -> Any:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _make_signing_key(folder: Path, secret: bytes | None) -> bytes:
    ed25519 = require("cryptography.hazmat.primitives.asymmetric.ed25519", "private", PURPOSE)
    return _write_pair(folder, "sign", ed25519.Ed25519PrivateKey.generate(), secret=secret)


# ---- files ----
def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)


def _write_pair(
    folder: Path, name: str, key: Any, kind: str = "PKCS8", secret: bytes | None = None
) -> bytes:
    """Write a key, private and public; returns the public part."""
    _write_private(folder / f"{name}.key", key, kind, secret)
    form = _serialization()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(public + b"\n")
    return public + b"\n"


def _write_private(path: Path, key: Any, kind: str = "PKCS8", secret: bytes | None = None) -> None:
    form = _serialization()
    private = getattr(form.PrivateFormat, kind)
    how = form.NoEncryption() if secret is None else form.BestAvailableEncryption(secret)
    content = key.private_bytes(form.Encoding.PEM, private, how)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(path, flags, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)


def _serialization() -> Any:
    return require("cryptography.hazmat.primitives.serialization", "private", PURPOSE)


# ---- signatures ----
def read_key(path: Path, public: bool = False) -> Any:
    """An Ed25519 key of a file; an error if it is missing or of another kind."""
    form = _serialization()
    curve = require("cryptography.hazmat.primitives.asymmetric.ed25519", "private", PURPOSE)
    if not path.is_file():
        message = f"the key {str(path)!r} is missing: make it with `steadytree private keys`."
        raise FileNotFoundError(message)
    key = None
    if not public:
        key = _read_private(path)
    else:
        with contextlib.suppress(*_unreadable()):
            key = form.load_ssh_public_key(path.read_bytes())
    if not isinstance(key, curve.Ed25519PublicKey if public else curve.Ed25519PrivateKey):
        raise ValueError(f"{str(path)!r} is not a signing key: name another.")
    return key


def _read_private(path: Path) -> Any:
    """A private key; None if the file has none. One that is encrypted needs its passphrase."""
    if not path.is_file():
        raise FileNotFoundError(f"the key {str(path)!r} is missing: restore it.")
    content, form = path.read_bytes(), _serialization()
    encrypted = b"ENCRYPTED" in content[:64]
    secret = passphrase() if encrypted else None
    if encrypted and secret is None:
        raise ValueError(f"the key {str(path)!r} is encrypted: set {PASSPHRASE}.")
    try:
        return form.load_pem_private_key(content, password=secret)
    except _unreadable():
        if encrypted:
            message = f"{PASSPHRASE} is not the passphrase of {str(path)!r}: check it."
            raise ValueError(message) from None
    return None


def _unreadable() -> tuple[type[Exception], ...]:
    """What the library raises for bytes that are no key; not all of it is a ValueError."""
    found = require("cryptography.exceptions", "private", PURPOSE)
    return ValueError, TypeError, found.UnsupportedAlgorithm, found.InternalError


def passphrase() -> bytes | None:
    """The passphrase of keys that are encrypted at rest, from the environment."""
    return os.environ.get(PASSPHRASE, "").encode() or None


def is_signed(signed: bytes, signature: bytes, public: Any) -> bool:
    """Whether the owner of a public key signed these bytes."""
    try:
        public.verify(signature, signed)
    except require("cryptography.exceptions", "private", PURPOSE).InvalidSignature:
        return False
    return True
