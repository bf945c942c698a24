"""The tokens that clients need: one, or one for each person, from the settings or from a file.

The file holds a token, or `NAME TOKEN` on each line; blank lines and lines that begin with `#` are ignored. If it does
not exist, it is created with a random token, readable by its user alone.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from calomel.infer.proof import nonce_and_proof, proof
from calomel.infer.upstream.exchange import is_sendable
from calomel.server.errors import StartError
from calomel.storage import SecretFileError, read_secret, write_whole

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_MAX_BYTES: Final = 1024 * 1024
# The name of the user's own editors; they find their token in the runtime file.
EDITORS: Final = "editors"


@dataclass(frozen=True, slots=True)
class Tokens:
    """The valid tokens.

    Attributes:
        by_name: a person's name to their token; the one token of a server without names has the name "".
    """

    by_name: Mapping[str, str] = field(repr=False)

    def owner(self, offered: bytes) -> str | None:
        """The name of the token's owner; None for a wrong token. Takes the same time for every wrong one."""
        owner = None
        for name, token in self.by_name.items():
            if hmac.compare_digest(offered, token.encode()):
                owner = name
        return owner

    def answer_to(self, credentials: str) -> str | None:
        """The server's proof for a client that has shown that it knows a token (`calomel.infer.proof`); else None."""
        asked = nonce_and_proof(credentials)
        if asked is None:
            return None
        nonce, shown = asked
        answer = None
        for token in self.by_name.values():
            if hmac.compare_digest(shown, proof(token, "client", nonce)):
                answer = proof(token, "server", nonce)
        return answer


def new_token() -> str:
    """A random token of 256 bits."""
    return secrets.token_urlsafe(32)


def default_path() -> Path:
    """The file with the token that this user's clients are configured with, once."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "token"


def read_or_make(path: Path) -> tuple[Tokens, bool]:
    """The tokens in `path`, and whether the file was created just now. Raises StartError."""
    try:
        return read(path), False
    except FileNotFoundError:
        pass
    _make(path)
    try:
        return read(path), True
    except FileNotFoundError:
        raise StartError(f"the token file {path} is gone") from None


def read(path: Path) -> Tokens:
    """The tokens in `path`. Raises FileNotFoundError, and StartError for a file that cannot be used."""
    try:
        return parse(read_secret(path, "the token file"), path)
    except SecretFileError as error:
        raise StartError(str(error)) from None


def parse(text: str, path: Path) -> Tokens:
    """The tokens in a file's text. Raises StartError, which names the line but not its content."""
    tokens: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        name, token = ("", words[0]) if len(words) == 1 else (words[0], words[1])
        if len(words) > 2 or not is_sendable(token) or (name and not _NAME.fullmatch(name)):  # noqa: PLR2004
            raise StartError(f"{path}, line {number}: write `TOKEN` or `NAME TOKEN`")
        if name in tokens or token in tokens.values() or name == EDITORS:
            raise StartError(f"{path}, line {number}: duplicate name or token")
        tokens[name] = token
    if not tokens:
        raise StartError(f"the token file {path} has no token: remove it, and the next start creates one")
    return Tokens(tokens)


def _make(path: Path) -> None:
    """Write a new token, atomically; a token that another server writes at the same time is kept."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(draft, new_token() + "\n", mode=0o600)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    except OSError as error:
        raise StartError(f"cannot write the token file {path} ({error.strerror})") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
