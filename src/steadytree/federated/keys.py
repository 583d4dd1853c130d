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
USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment"),
    *("key_agreement", "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def make_study_keys(folder: Path, holders: Iterable[str], hosts: Iterable[str]) -> list[Path]:
    """Make all keys of a study: a folder for the coordinator, and one for each holder.

    `hosts` are names or addresses at which holders reach the coordinator. Existing folders are
    refused. Returns the coordinator's folder, then those to hand to the holders.
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
    certificate = _make_tls(coordinator, list(hosts))
    signing = _make_signing_key(coordinator)
    for each in folders[1:]:
        node, own = make_holder_keys(each)
        (each / "ca.crt").write_bytes(certificate)
        (each / "coordinator.sign.pub").write_bytes(signing)
        (coordinator / f"{each.name}.node.pub").write_bytes(node)
        (coordinator / f"{each.name}.sign.pub").write_bytes(own)
    return folders


def make_holder_keys(folder: Path) -> tuple[bytes, bytes]:
    """A holder's own keys, made by the holder; returns the public parts."""
    if folder.exists():
        raise ValueError(f"{str(folder)!r} exists: name another folder, so that no key is lost.")
    crypto = require("cryptography.hazmat.primitives.asymmetric.ec", "private", PURPOSE)
    _make_folder(folder)
    key = crypto.generate_private_key(crypto.SECP384R1())  # what SuperNodes sign with
    return _write_pair(folder, "node", key, "OpenSSH"), _make_signing_key(folder)


def _make_tls(folder: Path, hosts: list[str]) -> bytes:
    """A certificate authority for the study, and the coordinator's certificate."""
    crypto = require("cryptography.hazmat.primitives.asymmetric.ec", "private", PURPOSE)
    root, server = (crypto.generate_private_key(crypto.SECP256R1()) for _ in range(2))
    authority = _certificate(root, ISSUER, root, None)
    own = _certificate(server, hosts[0], root, hosts)
    _write_private(folder / "ca.key", root)
    _write_private(folder / "server.key", server)
    (folder / "server.pem").write_bytes(own)
    (folder / "ca.crt").write_bytes(authority)
    return authority


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


def _make_signing_key(folder: Path) -> bytes:
    ed25519 = require("cryptography.hazmat.primitives.asymmetric.ed25519", "private", PURPOSE)
    return _write_pair(folder, "sign", ed25519.Ed25519PrivateKey.generate())


# ---- files ----
def _make_folder(folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700)


def _write_pair(folder: Path, name: str, key: Any, kind: str = "PKCS8") -> bytes:
    """Write a key, private and public; returns the public part."""
    _write_private(folder / f"{name}.key", key, kind)
    form = _serialization()
    public = key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (folder / f"{name}.pub").write_bytes(public + b"\n")
    return public + b"\n"


def _write_private(path: Path, key: Any, kind: str = "PKCS8") -> None:
    form = _serialization()
    private = getattr(form.PrivateFormat, kind)
    content = key.private_bytes(form.Encoding.PEM, private, form.NoEncryption())
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
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
    with contextlib.suppress(ValueError, TypeError):
        content = path.read_bytes()
        key = (
            form.load_ssh_public_key(content)
            if public
            else form.load_pem_private_key(content, password=None)
        )
    if not isinstance(key, curve.Ed25519PublicKey if public else curve.Ed25519PrivateKey):
        raise ValueError(f"{str(path)!r} is no key that signs files: name another.")
    return key


def is_signed(signed: bytes, signature: bytes, public: Any) -> bool:
    """Whether the owner of a public key signed these bytes."""
    try:
        public.verify(signature, signed)
    except require("cryptography.exceptions", "private", PURPOSE).InvalidSignature:
        return False
    return True
