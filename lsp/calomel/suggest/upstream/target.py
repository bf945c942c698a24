"""Where prompts may be sent, and as whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from calomel.suggest.loopback import is_loopback

_MAX_TOKEN_BYTES: Final = 8192


class TargetError(ValueError):
    """The address or the token's file cannot be used; the message says why, and repeats no secret."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server of completions.

    Attributes:
        url: `https://host:port/path` without `/v1` and without a slash at its end.
        model: the name that it serves the model under; None to take its only one.
        token: sent as `Authorization: Bearer`; None for none. It is shown nowhere.
    """

    url: str
    model: str | None = None
    token: str | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """The address as people see it: host, and the port where it says one."""
        return host_of(self.url)


def host_of(url: str) -> str:
    """Host and port of an address, without credentials, path and query."""
    return urlsplit(url).netloc.rpartition("@")[2]


def checked_url(url: str, *, plain: bool) -> str:
    """`url` as `Upstream` has it.

    Args:
        url: as a person wrote it.
        plain: unencrypted HTTP to another machine is wanted.

    Raises:
        TargetError: it is no address, holds credentials, or would send prompts unencrypted without being told to.
    """
    parts, host = urlsplit(""), None
    try:
        parts = urlsplit(url.strip())
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if parts.scheme not in {"http", "https"} or not host or not url.strip().isprintable():
        raise TargetError("it is no address such as https://gpu.example:8000")
    if "@" in parts.netloc:
        raise TargetError("it holds a name or password: put the token into upstream_token_file")
    if parts.query or parts.fragment:
        raise TargetError("an address ends before ? and #")
    if parts.scheme == "http" and not is_loopback(host) and not plain:
        raise TargetError(
            "prompts would go to another machine unencrypted: use https://, or say upstream-unencrypted as well"
        )
    path = parts.path.rstrip("/").removesuffix("/v1").rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def read_token(path: Path) -> str:
    """The token in a file, on a line of its own. Raises TargetError."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_TOKEN_BYTES + 1)
    except OSError as error:
        raise TargetError(f"the upstream's token file {path} cannot be read ({error.strerror})") from None
    token = data.decode("utf-8", "replace").strip()
    if not token or len(data) > _MAX_TOKEN_BYTES or not all("!" <= character <= "~" for character in token):
        raise TargetError(f"the upstream's token file {path} does not hold one token and nothing else")
    return token
