"""Proxy: passes calls of SuperNodes to Flower, and nothing else."""

import threading

from tests.federated import hospitals


def test_the_proxy_passes_calls_of_nodes_and_nothing_else(keys):
    import http.client
    import ssl
    from http.server import BaseHTTPRequestHandler, HTTPServer

    from steadytree.federated.flower.superlink import Proxy

    seen = []

    class Inner(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_):
            pass

    folder = keys / "coordinator"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "server.pem", folder / "server.key")
    inner = HTTPServer(("127.0.0.1", 0), Inner)
    inner.socket = tls.wrap_socket(inner.socket, server_side=True)
    threading.Thread(target=inner.serve_forever, daemon=True).start()
    outside = ssl.create_default_context(cafile=str(folder / "ca.crt"))

    def call(port, path, method="POST", body=b"x"):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, context=outside, timeout=hospitals.PATIENCE
        )
        connection.request(method, path, body)
        reply = connection.getresponse()
        found = reply.status, reply.read()
        connection.close()
        return found

    with Proxy(("127.0.0.1", 0), ("127.0.0.1", inner.server_port), folder) as proxy:
        assert call(proxy.server_port, "/v1/fleet/pull-messages") == (200, b"ok")
        for path in (
            *("/v1/control/register-node", "/v1/control/start-run", "/v1/runtime/x", "/"),
            *("/v1/fleet/../control/start-run", "/v1/fleet/%2e%2e/control/start-run"),
            *("/v1/fleet/", "/v1/fleet/a?b", "//v1/control/start-run"),
        ):
            assert call(proxy.server_port, path)[0] == 403, path
        assert call(proxy.server_port, "/v1/fleet/pull-messages", "GET", None)[0] == 501
    inner.shutdown()
    inner.server_close()
    assert seen == [("/v1/fleet/pull-messages", b"x")]
