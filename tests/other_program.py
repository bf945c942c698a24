"""Another program than Calomel at a port."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

REFUSED = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
MISSING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"
NO_HTTP = b"SSH-2.0-OpenSSH_9.2\r\n"


def answer_of(body: object) -> bytes:
    """An answer in JSON."""
    text = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(text)}\r\nconnection: close"
    return f"{head}\r\n\r\n".encode() + text


@contextmanager
def listening(answer: bytes | dict[str, bytes]) -> Iterator[str]:
    """Another program that has the port; it says the same to everybody, or what it has at some paths."""

    def serve() -> None:
        while True:
            try:
                peer, _ = server.accept()
            except OSError:
                return
            with peer:
                asked = peer.recv(65_536)
                path = asked.decode().partition(" ")[2].partition(" ")[0]
                peer.sendall(answer if isinstance(answer, bytes) else answer.get(path, MISSING))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
