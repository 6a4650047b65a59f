"""A web server on a loopback port that gives files: in ranges, as a whole, or without saying how long they are."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit


class FileServer:
    """The files of the working folder, on threads of its own while it is used as a context manager."""

    def __init__(self, manner: str = "ranges") -> None:
        """`ranges`, `whole` (no part can be asked for), `unsized` (no length is told) or `forbidden`."""
        self.asked: list[tuple[str, str | None]] = []
        """Paths with their queries, and the range that was asked for."""
        self.most_given = 0
        """Bytes of the longest answer."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                outer.answer(self, manner, body=False)

            def do_GET(self) -> None:
                outer.answer(self, manner, body=True)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def answer(self, request: BaseHTTPRequestHandler, manner: str, *, body: bool) -> None:
        """Answer one request."""
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        path = Path(unquote(urlsplit(request.path).path).lstrip("/"))
        if manner == "forbidden" or not path.is_file():
            request.send_error(403 if manner == "forbidden" else 404)
            return
        data = path.read_bytes()
        total = len(data)
        if wanted and manner == "ranges":
            first, last = wanted.removeprefix("bytes=").split("-")
            data = data[int(first) : int(last) + 1]
            request.send_response(206)
            request.send_header("Content-Range", f"bytes {first}-{int(first) + len(data) - 1}/{total}")
        else:
            request.send_response(200)
        if manner != "unsized":
            request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        if body:
            self.most_given = max(self.most_given, len(data))
            try:
                request.wfile.write(data)
            except ConnectionError:  # who asked has seen enough
                return
