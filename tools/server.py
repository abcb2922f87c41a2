"""Serve a built site to this machine alone, and tell open pages when it was built anew."""

from __future__ import annotations

import functools
import threading
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tools.errors import BuildError

HOST = "127.0.0.1"
PORT = 8000
ATTEMPTS = 20
EVENTS = "/-/built"
RELOAD = f"""<script>
new EventSource("{EVENTS}").onmessage = () => location.reload();
</script>
""".encode()


class Signal:
    """Counts the builds; requests can wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self.changed = threading.Condition()

    def send(self) -> None:
        with self.changed:
            self.count += 1
            self.changed.notify_all()

    def wait(self, seen: int, timeout: float) -> int:
        """The count as soon as it is no longer `seen`, or after `timeout` seconds."""
        with self.changed:
            self.changed.wait_for(lambda: self.count != seen, timeout)
            return self.count


class Handler(SimpleHTTPRequestHandler):
    """Files of the site, never cached; with a signal, pages that reload themselves."""

    signal: Signal | None = None
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".js": "text/javascript",
        ".woff2": "font/woff2",
        ".ipynb": "application/x-ipynb+json",
        ".whl": "application/octet-stream",
        "": "application/octet-stream",
    }

    def log_message(self, format: str, *args: object) -> None:
        pass

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_GET(self) -> None:
        if self.signal and self.path == EVENTS:
            self._events()
        elif self.signal and self._page():
            self._reloading(self._page())
        else:
            super().do_GET()

    def _page(self) -> Path | None:
        path = Path(self.translate_path(self.path))
        if self.path.split("?")[0].endswith("/"):
            path /= "index.html"
        return path if path.suffix == ".html" and path.is_file() else None

    def _reloading(self, path: Path) -> None:
        content = path.read_bytes() + RELOAD
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _events(self) -> None:
        seen = self.signal.count
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            while True:
                count = self.signal.wait(seen, timeout=10)
                self.wfile.write(b"data: built\n\n" if count != seen else b": still here\n\n")
                self.wfile.flush()
                seen = count
        except OSError:
            pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False


def open_server(folder: Path, port: int | None = None, signal: Signal | None = None) -> Server:
    """Listen on the loopback address for the files in `folder`.

    Without `port` the first free one from 8000 on is taken. Raises BuildError when the one asked for,
    or all of these, are taken.
    """
    handler = functools.partial(type("SiteHandler", (Handler,), {"signal": signal}), directory=str(folder))
    candidates = [port] if port is not None else range(PORT, PORT + ATTEMPTS)
    for candidate in candidates:
        try:
            return Server((HOST, candidate), handler)
        except (OSError, OverflowError):
            continue
    wanted = f"The port {port} is" if port is not None else f"The ports {PORT} to {PORT + ATTEMPTS - 1} are"
    raise BuildError(f"{wanted} taken or not allowed; name another one: `make serve PORT=8123`.")


def address(server: Server) -> str:
    return f"http://{HOST}:{server.server_port}/"
