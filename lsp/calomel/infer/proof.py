"""How a server of Calomel shows that it knows the token before it is sent anything, without showing the token.

On a new connection the client sends a nonce and its HMAC (RFC 2104, SHA-256) under the token; the server answers with
another one of the same nonce. A program that took the server's port learns neither the token nor any text.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from typing import Final, Literal

import h11

PROOF_PATH: Final = "/calomel/v1/proof"
SCHEME: Final = "Proof"
_CREDENTIALS: Final = re.compile(r"([0-9a-f]{32,64}):([0-9a-f]{64})")
_MOST_BYTES: Final = 16_384


class NotProvenError(Exception):
    """Whoever answered does not know the token, or is no server of Calomel.

    Attributes:
        status: of its answer; 0 if that was no HTTP, 200 if its proof was wrong.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def proof(token: str, side: Literal["client", "server"], nonce: str) -> str:
    """What only `side` knows to answer to a nonce, in hexadecimal."""
    return hmac.new(token.encode(), f"calomel-proof {side} {nonce}".encode(), "sha256").hexdigest()


def nonce_and_proof(credentials: str) -> tuple[str, str] | None:
    """What a client sent behind the scheme `Proof`; None for anything malformed."""
    match = _CREDENTIALS.fullmatch(credentials)
    return None if match is None else (match[1], match[2])


class Challenge:
    """One question to a server, without a connection of its own.

    Args:
        token: that both sides know.
        host: of the server, with its port, for the header of that name.

    Attributes:
        request: bytes to send.
    """

    def __init__(self, token: str, host: str) -> None:
        nonce = secrets.token_hex(16)
        self._expected = proof(token, "server", nonce)
        self._connection = h11.Connection(h11.CLIENT, _MOST_BYTES)
        self._status = 0
        self._body = b""
        headers = [("host", host), ("authorization", f"{SCHEME} {nonce}:{proof(token, 'client', nonce)}")]
        head = self._connection.send(h11.Request(method="GET", target=PROOF_PATH, headers=headers))
        self.request: bytes = (head or b"") + (self._connection.send(h11.EndOfMessage()) or b"")

    def proven(self, data: bytes) -> bool:
        """Take what the server sent, empty at its end; whether the proof is complete. Raises NotProvenError."""
        try:
            self._connection.receive_data(data)
            while (event := self._connection.next_event()) is not h11.NEED_DATA:
                match event:
                    case h11.Response():
                        self._status = event.status_code
                    case h11.Data():
                        self._body += event.data
                        if len(self._body) > _MOST_BYTES:
                            raise NotProvenError(0)
                    case h11.EndOfMessage():
                        self._judge()
                        return True
                    case h11.ConnectionClosed() | h11.PAUSED:
                        raise NotProvenError(0)
        except h11.RemoteProtocolError:
            raise NotProvenError(0) from None
        return False

    def _judge(self) -> None:
        if self._status != 200:  # noqa: PLR2004 (RFC 9110)
            raise NotProvenError(self._status)
        try:
            answer = json.loads(self._body)["proof"]
        except (ValueError, KeyError, TypeError, RecursionError):
            answer = None
        if not isinstance(answer, str) or not hmac.compare_digest(answer.encode(), self._expected.encode()):
            raise NotProvenError(200)
