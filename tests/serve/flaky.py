"""A bad line between a client and a service: it loses requests and answers, cuts them, and says not now."""

import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FAULTS = ("request lost", "answer lost", "answer cut", "not now", "too fast")
Fault = Callable[[str, str], str | None]
"""Of a method and a path, what goes wrong this time; None: nothing."""


class Line(BaseHTTPRequestHandler):
    """Passes requests on, or not."""

    protocol_version = "HTTP/1.1"
    url: str
    fault: Fault

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def do_GET(self) -> None:
        self._passed_on()

    def do_POST(self) -> None:
        self._passed_on()

    def _passed_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        wrong = type(self).fault(self.command, self.path)
        if wrong == "request lost":
            self._reset()
            return
        if wrong in ("not now", "too fast"):
            self._said(503 if wrong == "not now" else 429, b"{}", 0)
            return
        status, answer = self._asked(body)
        if wrong == "answer lost":
            self._reset()
            return
        self._said(status, answer, len(answer) // 2 if wrong == "answer cut" else 0)

    def _asked(self, body: bytes) -> tuple[int, bytes]:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        passed = {name: x for name, x in self.headers.items() if name.lower() != "connection"}
        try:
            connection.request(self.command, self.path, body or None, passed)
            found = connection.getresponse()
            return found.status, found.read()
        finally:
            connection.close()

    def _said(self, status: int, answer: bytes, cut: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(answer[:cut] if cut else answer)
        if cut:
            self.close_connection = True

    def _reset(self) -> None:
        """Without a farewell."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True


@contextmanager
def flaky(url: str, fault: Fault, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """The address of the bad line to a service; with a certificate and its key it speaks TLS."""
    line = type("Line", (Line,), {"url": url, "fault": staticmethod(fault)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), line)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
