"""Proxy: passes calls of registered SuperNodes to Flower, and spends little on anybody else.

Flower serves the calls of SuperNodes, which it authenticates, and calls that start runs and
register nodes, which it does not, at one address. So Flower listens at a local address, and the
proxy at the public one. Flower also reads a call before it asks who sent it; the proxy reads no
body before the caller has proven, by Flower's own headers, that it has the key of a holder.
"""

import base64
import contextlib
import datetime
import http.client
import logging
import re
import socket
import ssl
import threading
from collections import Counter
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from steadytree._base.clock import CLOCK, Clock
from steadytree._base.optional import require

ALLOWED = re.compile(r"/v1/fleet/[a-z-]+")
LARGEST = 80 * 2**20  # bytes of a call
HEADERS = 2**14  # bytes of its headers
CHUNK = 2**16
PATIENCE = 120.0  # seconds for bytes of a caller that is known
PROOF = 10.0  # seconds until a caller is known
MOST_UNPROVEN = 64  # connections of callers that are not known; the oldest makes room
MOST_EACH = 16  # connections of one holder
MOST_AGE = 300.0  # seconds of a signed time
DROPPED = frozenset(["connection", "host", "keep-alive", "transfer-encoding", "content-length"])
_LOG = logging.getLogger(__name__)


class Proxy(ThreadingHTTPServer):
    """Listens with TLS at `address` and passes calls of holders' SuperNodes to Flower at `inner`.

    A context manager; `keys` is the coordinator's folder with server.pem, server.key and ca.crt,
    and with NAME.node.pub of each holder. A renewed certificate is used, and a removed key is
    refused, from the next connection on.
    """

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self,
        address: tuple[str, int],
        inner: tuple[str, int],
        keys: Path,
        holders: Iterable[str],
        clock: Clock = CLOCK,
    ) -> None:
        self._tls, self._keys, self._clock = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), keys, clock
        self._loaded = 0.0
        self._load_certificate()
        self._known = {node_key(path): path for path in self._paths(holders)}
        self._turn, self._served = threading.Lock(), Counter[str]()
        self._unproven: dict[ssl.SSLSocket, float] = {}  # and since when; the oldest first
        self.inner = (*inner, ssl.create_default_context(cafile=str(keys / "ca.crt")))
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Caller)

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def _paths(self, holders: Iterable[str]) -> list[Path]:
        return [self._keys / f"{name}.node.pub" for name in holders]

    def _load_certificate(self) -> None:
        changed = (self._keys / "server.pem").stat().st_mtime
        if changed != self._loaded:
            self._tls.load_cert_chain(self._keys / "server.pem", self._keys / "server.key")
            self._loaded = changed

    # ---- connections ----
    def process_request(self, request: Any, client_address: Any) -> None:
        """Begin a connection; where there are too many without a key, the oldest is closed."""
        with contextlib.suppress(OSError):  # being renewed just now
            self._load_certificate()
        request.settimeout(PROOF)
        how: dict[str, Any] = {"server_side": True, "do_handshake_on_connect": False}
        wrapped = self._tls.wrap_socket(request, **how)
        with self._turn:
            self._unproven[wrapped] = self._clock.now()
            oldest = next(iter(self._unproven)) if len(self._unproven) > MOST_UNPROVEN else None
        if oldest is not None:
            self._close(oldest)
        super().process_request(wrapped, client_address)

    def service_actions(self) -> None:
        """Close connections that have not proven a key in time, however they drip."""
        with self._turn:
            since = self._clock.now() - PROOF
            late = [one for one, begun in self._unproven.items() if begun < since]
        for one in late:
            self._close(one)

    def _close(self, connection: ssl.SSLSocket) -> None:
        with self._turn:
            self._unproven.pop(connection, None)
        with contextlib.suppress(OSError):  # its thread sees the end, and leaves
            socket.socket.shutdown(connection, socket.SHUT_RDWR)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """The TLS handshake in the caller's own thread, so that a slow one delays nobody."""
        try:
            request.do_handshake()
            super().finish_request(request, client_address)
        finally:
            with self._turn:
                self._unproven.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.info("a call was broken off")

    # ---- who calls ----
    def admit(self, connection: ssl.SSLSocket, headers: Any) -> str:
        """The holder whose key signed a call; empty if there is none."""
        holder = self._holder_of(headers)
        if holder:
            with self._turn:
                self._unproven.pop(connection, None)
            connection.settimeout(PATIENCE)
        return holder

    def _holder_of(self, headers: Any) -> str:
        try:
            key = base64.b64decode(headers["flwr-public-key"], validate=True)
            signature = base64.b64decode(headers["flwr-signature"], validate=True)
            signed = str(headers["flwr-timestamp"])
            age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(signed)
        except (ValueError, TypeError):
            return ""
        path = self._known.get(key)
        if path is None or not path.is_file() or abs(age.total_seconds()) > MOST_AGE:
            return ""
        return path.name.removesuffix(".node.pub") if _is_signed(key, signed, signature) else ""

    @contextlib.contextmanager
    def serving(self, holder: str) -> Any:
        """Count a call of a holder; False if it makes too many at once."""
        with self._turn:
            self._served[holder] += 1
            few = self._served[holder] <= MOST_EACH
        try:
            yield few
        finally:
            with self._turn:
                self._served[holder] -= 1


def node_key(path: Path) -> bytes:
    """A SuperNode's public key as Flower's headers have it."""
    form = require("cryptography.hazmat.primitives.serialization", "private", "the proxy")
    key = form.load_ssh_public_key(path.read_bytes())
    kind = form.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_bytes(form.Encoding.PEM, kind))


def _is_signed(key: bytes, content: str, signature: bytes) -> bool:
    form = require("cryptography.hazmat.primitives.serialization", "private", "the proxy")
    curve = require("cryptography.hazmat.primitives.asymmetric.ec", "private", "the proxy")
    hashes = require("cryptography.hazmat.primitives.hashes", "private", "the proxy")
    invalid = require("cryptography.exceptions", "private", "the proxy").InvalidSignature
    try:
        how = curve.ECDSA(hashes.SHA256())
        form.load_pem_public_key(key).verify(signature, content.encode(), how)
    except (invalid, ValueError):
        return False
    return True


class _Lines:
    """What a caller sends: lines of headers, limited in all, and a body of known size."""

    def __init__(self, file: Any) -> None:
        self._file, self.left = file, HEADERS

    def readline(self, most: int = -1) -> bytes:
        if self.left <= 0:
            raise ConnectionError("headers are too large")
        line: bytes = self._file.readline(min(most, self.left) if most >= 0 else self.left)
        self.left -= len(line)
        return line

    def read(self, size: int) -> bytes:
        return bytes(self._file.read(size))

    def close(self) -> None:
        self._file.close()


class _Body:
    """The body of a call, read as it is passed on."""

    def __init__(self, file: Any, size: int) -> None:
        self._file, self._left = file, size

    def read(self, size: int = CHUNK) -> bytes:
        part: bytes = self._file.read(min(size, CHUNK, self._left))
        self._left -= len(part)
        return part


class _Caller(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def setup(self) -> None:
        super().setup()
        self.rfile = _Lines(self.rfile)  # type: ignore[assignment]

    def handle_one_request(self) -> None:
        self.rfile.left = HEADERS  # type: ignore[attr-defined]
        super().handle_one_request()

    def do_POST(self) -> None:
        text = self.headers.get("content-length", "")
        size = int(text) if text.isdecimal() and len(text) < 12 else LARGEST + 1
        holder = self.server.admit(self.connection, self.headers)
        if not ALLOWED.fullmatch(self.path):
            self._refuse(403, size)
        elif not holder:
            self._refuse(401, size)
        elif size > LARGEST or "transfer-encoding" in self.headers:
            self._refuse(413, size)
        else:
            with self.server.serving(holder) as few:
                self._pass_on(size) if few else self._refuse(429, size)

    def _refuse(self, status: int, size: int) -> None:
        self.close_connection = True
        if size <= CHUNK:  # otherwise the caller sees a broken connection, and retries
            self.rfile.read(size)
        self.send_error(status)

    def _pass_on(self, size: int) -> None:
        host, port, tls = self.server.inner
        headers = {k: v for k, v in self.headers.items() if k.lower() not in DROPPED}
        headers["content-length"] = str(size)
        inner = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=tls)
        try:
            inner.request("POST", self.path, _Body(self.rfile, size), headers)
            reply = inner.getresponse()
            content = reply.read()
        except (OSError, http.client.HTTPException):
            self.close_connection = True
            self.send_error(502)
            return
        finally:
            inner.close()
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in DROPPED | {"date", "server"}:
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        _LOG.debug(format, *arguments)
