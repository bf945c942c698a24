"""A Hugging Face hub of this machine, with one repository."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(ThreadingHTTPServer):
    """Has one repository with these files; `breaks` requests end in the middle, or stay there while `holds` is set.

    While `gone` is set, it refuses to continue a file.
    """

    def __init__(self, files: dict[str, bytes], repository: str) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.files, self.repository = files, repository
        self.told = {name: hashlib.sha256(data).hexdigest() for name, data in self.files.items()}
        self.sizes: dict[str, int] = {}  # where they are told otherwise
        self.breaks = 0
        self.holds = self.gone = False
        self.ranges: list[str | None] = []
        self.tokens: set[str | None] = set()


class _Answers(BaseHTTPRequestHandler):
    server: Hub

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        if self.path.startswith(f"/api/models/{self.server.repository}"):
            files = {name: self.server.sizes.get(name, len(data)) for name, data in self.server.files.items()}.items()
            lfs = {name: {"size": size, "sha256": self.server.told[name], "pointerSize": 1} for name, size in files}
            siblings = [{"rfilename": name, "size": size, "lfs": lfs[name]} for name, size in files]
            told = {"id": self.server.repository, "sha": COMMIT, "siblings": siblings, "cardData": {"license": "mit"}}
            self._send(json.dumps(told).encode())
            return
        name = self.path.partition(f"/{self.server.repository}/resolve/{COMMIT}/")[2]
        if name not in self.server.files:
            self.send_error(404)
            return
        data, asked = self.server.files[name], self.headers["Range"]
        if self.command == "GET":
            self.server.ranges.append(asked)
        if asked and self.server.gone:
            self.close_connection = True
            return
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        etag = {"ETag": f'"{self.server.told[name]}"', "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        if start:
            etag["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
        self._send(data[start:], 206 if start else 200, etag)

    def _send(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            broken = self.server.breaks > 0 and status in {200, 206} and len(body) > 100_000
            self.server.breaks -= broken
            self.wfile.write(body[: len(body) // 2] if broken else body)
            while broken and self.server.holds:
                time.sleep(0.01)
            self.close_connection = True


@contextmanager
def hub_with(files: dict[str, bytes], repository: str = "me/small") -> Iterator[Hub]:
    server = Hub(files, repository)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
