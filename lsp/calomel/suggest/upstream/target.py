"""Where an upstream server is, and what may be wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, get_args
from urllib.parse import SplitResult, urlsplit

from calomel.suggest.completer import CompleterError
from calomel.suggest.remote import is_loopback

UpstreamFormat = Literal["auto", "llama.cpp", "ollama", "vllm", "openai", "mercury"]
FORMAT_NAMES: Final = get_args(UpstreamFormat)


class UpstreamError(CompleterError):
    """The upstream server could not answer; the message is one sentence that says what to do, with nothing of the key.

    Attributes:
        status: of its response; 0 where there was none.
        said: its own message in small letters, which may quote the prompt: for telling cases apart, and for nobody.
        gone: it is not there, or no longer: the next try may find it.
        window: so many tokens it has room for, which were too few.
    """

    def __init__(
        self, code: str, message: str, status: int = 0, said: str = "", *, gone: bool = False, window: int = 0
    ) -> None:
        super().__init__(code, message)
        self.status = status
        self.said = said
        self.gone = gone
        self.window = window


@dataclass(frozen=True, slots=True)
class Target:
    """The server that is asked.

    Attributes:
        url: without a path that ends in `/v1`, which every format adds by itself.
        format: the wire format; `auto` asks the server.
        model: by the server's own name; None for the only one.
        key: sent as `Authorization: Bearer`.
        fim: name of a format of `calomel.prompts.fim_tokens`; None where the model's tokens or its name tell.
        edit: name of a format of `calomel.prompts.next_edit`; None where the model's name tells.
    """

    url: str
    format: UpstreamFormat = "auto"
    model: str | None = None
    key: str | None = field(default=None, repr=False)
    fim: str | None = None
    edit: str | None = None

    @property
    def base(self) -> str:
        """What paths are added to."""
        return self.url.rstrip("/").removesuffix("/v1")

    @property
    def hosted(self) -> bool:
        """Whether it is the hosted Mercury API."""
        return (urlsplit(self.url).hostname or "").endswith("inceptionlabs.ai")


def problem_of(url: str) -> str | None:
    """What is wrong with an address that prompts would be sent to; None for nothing."""
    try:
        parts = urlsplit(url)
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        whole = False
    if not whole or any(character.isspace() for character in url):
        return "upstream is no address: give one such as http://127.0.0.1:8080"
    return _unsafe(parts)


def _unsafe(parts: SplitResult) -> str | None:
    if parts.username or parts.password or parts.query or parts.fragment:
        return "upstream has more than an address: give a key by upstream-key-file or CALOMEL_UPSTREAM_KEY"
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        return "upstream would send your code unencrypted to another machine: use https, or a tunnel (ssh -L)"
    return None
