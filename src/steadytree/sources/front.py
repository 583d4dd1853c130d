"""Front: the one port of a coordinator that is open to others; lets Flower's Fleet API through.

Flower serves the calls of SuperNodes, which it authenticates, and calls that start runs and
register nodes, which it does not, at one address. So that address is a local one, and this stands
before it.
"""

import http.client
import logging
import re
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ALLOWED = re.compile(r"/v1/fleet/[a-z-]+")
LARGEST = 80 * 2**20  # bytes of a call
SMALL = 2**16
PATIENCE = 120.0  # seconds
DROPPED = frozenset(["connection", "host", "keep-alive", "transfer-encoding", "content-length"])
_LOG = logging.getLogger(__name__)


class Front:
    """Listens with TLS and hands calls of SuperNodes to Flower, for as long as a `with` block.

    Parameters
    ----------
    address : (host, port)
        Where to listen.
    inner : (host, port)
        Flower's own address, on this machine.
    keys : Path
        The coordinator's folder: ``server.pem``, ``server.key``, ``ca.crt``.
    """

    def __init__(self, address: tuple[str, int], inner: tuple[str, int], keys: Path) -> None:
        ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ours.load_cert_chain(keys / "server.pem", keys / "server.key")
        theirs = ssl.create_default_context(cafile=str(keys / "ca.crt"))
        self._server = _Server(address, ours, (*inner, theirs))
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> "Front":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], tls: ssl.SSLContext, inner: Any) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self._tls, self.inner = tls, inner
        super().__init__(address, _Caller)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own: a caller slow to shake hands keeps nobody waiting."""
        request.settimeout(PATIENCE)
        with self._tls.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _LOG.info("a call was broken off")


class _Caller(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    server: _Server

    def do_POST(self) -> None:
        text = self.headers.get("content-length", "")
        size = int(text) if text.isdecimal() and len(text) < 12 else LARGEST + 1
        if not ALLOWED.fullmatch(self.path):
            self._refuse(403, size)
        elif size > LARGEST or "transfer-encoding" in self.headers:
            self._refuse(413, size)
        else:
            self._pass_on(self.rfile.read(size))

    def _refuse(self, code: int, size: int) -> None:
        self.close_connection = True
        if size <= SMALL:  # or the caller would hear of a broken connection, and try again
            self.rfile.read(size)
        self.send_error(code)

    def _pass_on(self, body: bytes) -> None:
        host, port, tls = self.server.inner
        headers = {k: v for k, v in self.headers.items() if k.lower() not in DROPPED}
        inner = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=tls)
        try:
            inner.request("POST", self.path, body, headers)
            reply = inner.getresponse()
            content = reply.read()
        except OSError:
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
