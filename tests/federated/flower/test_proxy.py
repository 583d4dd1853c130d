"""Proxy: passes calls of holders' SuperNodes to Flower, and nothing else."""

import base64
import contextlib
import datetime
import http.client
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.federated import hospitals
from tests.federated.hospitals import NAMES

pytest.importorskip("cryptography")
from steadytree.federated.flower import proxy as module
from steadytree.federated.flower.proxy import HEADERS, LARGEST, Proxy
from steadytree.federated.keys import make_holder_keys

PULL = "/v1/fleet/pull-messages"


def signed(key, age=0.0, altered=False):
    """The headers by which Flower's SuperNode shows that it has a key."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = serialization.load_ssh_private_key(key.read_bytes(), None)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = private.public_key().public_bytes(serialization.Encoding.PEM, form)
    time = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=age)
    text = time.isoformat()
    signature = private.sign(text.encode(), ec.ECDSA(hashes.SHA256()))
    values = {"flwr-public-key": public, "flwr-signature": signature}
    found = {name: base64.b64encode(value).decode() for name, value in values.items()}
    return {**found, "flwr-timestamp": text + "0" * altered}


class Site:
    """A proxy before a server that stands for Flower, and callers of it."""

    def __init__(self, keys):
        self.keys, self.seen = keys, []
        self.outside = ssl.create_default_context(cafile=str(keys / "coordinator" / "ca.crt"))

    @contextlib.contextmanager
    def serve(self):
        folder, seen = self.keys / "coordinator", self.seen

        class Inner(BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append((self.path, len(self.rfile.read(int(self.headers["content-length"])))))
                self.send_response(200)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_):
                pass

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(folder / "server.pem", folder / "server.key")
        inner = HTTPServer(("127.0.0.1", 0), Inner)
        inner.socket = tls.wrap_socket(inner.socket, server_side=True)
        threading.Thread(target=inner.serve_forever, daemon=True).start()
        with Proxy(("127.0.0.1", 0), ("127.0.0.1", inner.server_port), folder, NAMES) as proxy:
            self.port, self.proxy = proxy.server_port, proxy
            yield self
        inner.shutdown()
        inner.server_close()

    def call(self, path=PULL, method="POST", body=b"x", headers=None):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=self.outside, timeout=hospitals.PATIENCE
        )
        own = signed(self.node("north")) if headers is None else headers
        connection.request(method, path, body, own)
        reply = connection.getresponse()
        found = reply.status, reply.read()
        connection.close()
        return found

    def node(self, name):
        return self.keys / name / "relay" / "node.key"

    def connect(self):
        """A connection with TLS that sends nothing."""
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=hospitals.PATIENCE)
        return self.outside.wrap_socket(plain, server_hostname="127.0.0.1")


@pytest.fixture
def site(keys):
    with Site(keys).serve() as found:
        yield found


def test_the_proxy_passes_calls_of_nodes_and_nothing_else(site):
    assert site.call() == (200, b"ok")
    assert site.call(body=b"x" * 200_000) == (200, b"ok")
    for path in (
        *("/v1/control/register-node", "/v1/control/start-run", "/v1/runtime/x", "/"),
        *("/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run"),
        *("/v1/fleet/", "/v1/fleet/a?b", "//v1/control/start-run"),
    ):
        assert site.call(path)[0] == 403, path
    assert site.call(method="GET", body=None)[0] == 501
    assert site.seen == [(PULL, 1), (PULL, 200_000)]


def test_a_caller_without_a_holders_key_is_not_listened_to(site, tmp_path):
    make_holder_keys(tmp_path / "stranger")
    stranger = tmp_path / "stranger" / "relay" / "node.key"
    own = site.node("north")
    foreign = signed(own) | {"flwr-signature": signed(stranger)["flwr-signature"]}
    for headers in (
        *({}, signed(stranger), foreign, signed(own, altered=True)),
        *(signed(own, age=400.0), signed(own, age=-400.0), signed(own) | {"flwr-signature": "!"}),
        signed(own) | {"flwr-timestamp": "yesterday"},
    ):
        assert site.call(headers=headers)[0] == 401
    assert site.seen == []


def test_no_body_is_read_before_a_key_is_proven(site):
    with site.connect() as caller:  # what once took 79 MiB of memory each
        caller.sendall(f"POST {PULL} HTTP/1.1\r\ncontent-length: {79 * 2**20}\r\n\r\n".encode())
        assert caller.recv(100).startswith(b"HTTP/1.1 401")
    own = signed(site.node("north"))
    lines = "".join(f"{name}: {value}\r\n" for name, value in own.items())
    with site.connect() as caller:
        head = f"POST {PULL} HTTP/1.1\r\n{lines}content-length: {LARGEST + 1}\r\n\r\n"
        caller.sendall(head.encode())
        assert caller.recv(100).startswith(b"HTTP/1.1 413")


def test_headers_have_a_limit(site):
    with site.connect() as caller, contextlib.suppress(OSError):
        caller.sendall(b"POST / HTTP/1.1\r\n" + b"a: " + b"x" * HEADERS + b"\r\n\r\n")
        assert caller.recv(100) == b""


def test_many_silent_callers_make_room_for_a_holder(site, monkeypatch):
    monkeypatch.setattr(module, "MOST_UNPROVEN", 5)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(site.connect()) for _ in range(12)]
        half = [
            stack.enter_context(
                socket.create_connection(("127.0.0.1", site.port), timeout=hospitals.PATIENCE)
            )
            for _ in range(6)
        ]
        assert site.call() == (200, b"ok")
        assert len(site.proxy._unproven) <= 5
        with contextlib.suppress(OSError):
            assert silent[0].recv(1) == b""  # the oldest was closed
        assert half


def test_a_caller_that_does_not_prove_a_key_in_time_is_closed(site, monkeypatch):
    with site.connect() as caller:
        caller.sendall(b"POST / HT")  # it drips
        monkeypatch.setattr(module, "PROOF", -1.0)
        with contextlib.suppress(OSError):
            assert caller.recv(1) == b""


def test_a_revoked_key_and_a_renewed_certificate_count_at_once(site):
    from steadytree.federated.keys import renew_certificate, revoke_holder

    folder = site.keys / "coordinator"
    first = ssl.get_server_certificate(("127.0.0.1", site.port))
    assert site.call()[0] == 200
    renew_certificate(folder, ["127.0.0.1"])
    assert site.call()[0] == 200  # by the same authority
    assert ssl.get_server_certificate(("127.0.0.1", site.port)) != first
    revoke_holder(folder, "north")
    assert site.call()[0] == 401
    assert site.call(headers=signed(site.node("south")))[0] == 200
    assert (folder / "revoked" / "north.node.pub").is_file()
    with pytest.raises(ValueError, match="'west' has no key here"):
        revoke_holder(folder, "west")


def test_a_holder_has_so_many_calls_at_once(site):
    with contextlib.ExitStack() as stack:
        for _ in range(module.MOST_EACH):
            assert stack.enter_context(site.proxy.serving("north"))
        assert site.call()[0] == 429
        assert site.call(headers=signed(site.node("south")))[0] == 200
    assert site.call()[0] == 200
