"""Every setting of the server, its default and the reason for that default.

A setting comes from a keyword argument, else from the environment variable `CALOMEL_` + its name. `layers.load` puts
the user's configuration file below them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from calomel.suggest.loopback import is_loopback
from calomel.suggest.upstream.target import TargetError, checked_url, host_of

MIB: Final = 1024 * 1024
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@\s*,]+")


def _split(value: Any) -> Any:
    """Several names in one environment variable stand between commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]


class ServerSettings(BaseSettings):
    """How `calomel serve` listens, whom it lets in, which model it opens and where it stops.

    Raises `pydantic.ValidationError` (a `ValueError`) for a combination that would leave the door open by accident.
    """

    model_config = SettingsConfigDict(
        env_prefix="CALOMEL_",
        extra="forbid",
        frozen=True,
        # A token typed into the wrong place must not appear in the error about it.
        hide_input_in_errors=True,
    )

    host: str = Field(default="127.0.0.1", description="Only this machine can connect; editors run on it.")
    port: int = Field(
        default=8017,
        ge=0,
        le=65535,
        description="Mercury is element 80, chlorine 17. 0 lets the system choose a free one.",
    )
    allow_remote: bool = Field(
        default=False,
        description="A host that other machines can reach must be asked for twice.",
    )
    allowed_hosts: Names = Field(
        default=(),
        description="Further names for the Host header. Names beyond loopback are refused: they mean DNS rebinding.",
    )
    allowed_origins: Names = Field(
        default=(),
        description="Web pages of other addresses that may ask, as `https://name:port`. Any page that a browser shows "
        "could otherwise use the server.",
    )
    token: SecretStr | None = Field(
        default=None,
        description="What clients send as `Authorization: Bearer`. Unset: the one in `token_file`.",
    )
    token_file: Path | None = Field(
        default=None,
        description="A token, or one a person as `NAME TOKEN` lines; made at the first start if it is not there. "
        "Unset: `token` in the user's state folder.",
    )
    fresh_token: bool = Field(
        default=False,
        description="A random token at each start, which stands in the runtime file alone: for the server that editors "
        "start for themselves.",
    )
    no_auth: bool = Field(
        default=False,
        description="Any program and any user of this machine could read completions; so it must be asked for.",
    )
    tls_cert: Path | None = Field(
        default=None, description="Certificate chain (PEM) to serve HTTPS with. Unset: plain HTTP."
    )
    tls_key: Path | None = Field(default=None, description="The certificate's private key (PEM).")
    runtime_file: Path | None = Field(
        default=None,
        description="Where address, token and process id are left for the user's editors. Unset: the user's runtime "
        "folder, which other users cannot read.",
    )
    model: Path | None = Field(
        default=None, description="Checkpoint folder, or a name in the models folder. Unset: the shipped model."
    )
    device: str = Field(default="cpu", description="Runs everywhere; the shipped model needs no GPU.")
    threads: int | None = Field(default=None, ge=1, le=1024, description="Unset: the engine chooses.")
    quantize: Literal["int8", "fp8"] | None = Field(
        default=None,
        description="Weights in eight bits: a half of bfloat16's memory. fp8 is for GPUs that multiply it.",
    )
    exact: bool = Field(
        default=False,
        description="Each step reads the whole window, where a family has a faster way that is nearly as good (LLaDA).",
    )
    upstream: str | None = Field(
        default=None,
        description="Where the weights of `model` are served, as `https://host:port`: prompts go there. Unset: they "
        "are opened here, and no prompt leaves this process.",
    )
    upstream_model: str | None = Field(
        default=None, min_length=1, max_length=256, description="The name it has there. Unset: the only one there."
    )
    upstream_token_file: Path | None = Field(
        default=None, description="Holds what is sent there as `Authorization: Bearer`. Unset: nothing is."
    )
    upstream_unencrypted: bool = Field(
        default=False, description="Prompts in plain HTTP over a network must be asked for twice."
    )
    replicas: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="Processes with the model, kept by Ray Serve (`pip install 'calomel[cluster]'`): a workspace stays "
        "with one of them, and one that is lost is replaced. Unset: the model is in the server's own process.",
    )
    max_requests: int = Field(
        default=128,
        ge=1,
        le=65_536,
        description="Requests running or waiting at once: a team of 64 that asks twice. A longer queue only serves "
        "clients that have gone.",
    )
    client_share: float = Field(
        default=0.75,
        gt=0,
        le=1,
        description="Of these places, what one client may hold, so that a broken one leaves room for the others.",
    )
    requests_per_minute: int | None = Field(
        default=None,
        ge=1,
        le=1_000_000,
        description="Of one client. Unset: no limit; the places above bound what a client can take.",
    )
    max_connections: int = Field(
        default=512,
        ge=1,
        le=65_536,
        description="Half of the files that a process may open by default; further connections are closed at once.",
    )
    max_body_bytes: int = Field(
        default=4 * MIB,
        ge=1024,
        le=1024 * MIB,
        description="32,768 tokens are about 130 KB of text; JSON escapes can make that six times as long.",
    )
    receive_seconds: float = Field(
        default=20.0,
        gt=0,
        le=3600,
        description="In which a request must have arrived whole, and a client must take what it is sent. 4 MiB take "
        "as long at 1.7 Mbit/s.",
    )
    idle_minutes: float | None = Field(
        default=None,
        gt=0,
        le=10_080,
        description="End after so long without a request. Unset: stay. Editors start their shared server with it.",
    )
    idle_unload: float | None = Field(
        default=None,
        gt=0,
        le=10_080,
        description="Minutes without a request after which the model's memory is given back; the next request waits "
        "while it is opened again. Unset: it stays.",
    )
    wake_seconds: float = Field(
        default=30.0,
        ge=0,
        le=3600,
        description="How long a request waits for a model that is opened again; beyond, it is told to come back.",
    )
    offline: bool = Field(
        default=False,
        description="Refuse every connection to another machine, by whatever library. The server itself makes none "
        "without an `upstream`.",
    )
    cache_tokens: int | None = Field(
        default=None,
        ge=1024,
        le=2**24,
        description="Of contexts that stay encoded; as many again are laid out, being served or for their next "
        "keystroke. Unset: 32,768 on a CPU, so that the shipped model's server stays below 1 GB, and 163,840 on a GPU; "
        "less where memory, or a container's limit, leaves no room. The shipped model takes 12 KB for each (6 KB where "
        "bfloat16 is native).",
    )
    context_tokens: int | None = Field(
        default=None,
        ge=128,
        le=32_768,
        description="Of a prompt; what is longer is cut like an editor's context. Unset: what the benches support for "
        "the model.",
    )
    workspace: Path | None = Field(
        default=None,
        description="A folder whose files clients ask about: what they show of one is completed from it, and from "
        "related code, as ignore rules and secrets allow. Unset: what a client sends is all that is known; a request "
        "can never name a folder.",
    )
    aggressiveness: Literal["quiet", "balanced", "eager"] | Annotated[float, Field(ge=0, le=1)] = Field(
        default="balanced",
        description="How sure an edit must be to be answered: quiet, balanced, eager, or a probability from 0 to 1. "
        "The same words as in editors; what they come to is fitted for the model.",
    )
    outcome_log: bool = Field(
        default=True,
        description="Clients' feedback is kept for `calomel stats` and `calomel calibrate`, on this machine, without "
        "text. Off: it is taken and forgotten.",
    )
    record_denoising: bool = Field(
        default=False,
        description="Recent answers can be replayed step by step on the status page. That keeps their text in memory, "
        "so it must be asked for; nothing of it is ever written to disk.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="One line a fill on standard error: counts and times, never text."
    )
    log_format: Literal["text", "json"] = Field(
        default="text", description="Lines for people, or one JSON object a line for a collector."
    )
    shutdown_seconds: int = Field(
        default=5, ge=0, le=3600, description="How long running requests may go on after the server was told to stop."
    )

    @model_validator(mode="after")
    def _refuse_an_open_door(self) -> Self:
        token = None if self.token is None else self.token.get_secret_value()
        if token is not None and not is_sendable(token):
            raise ValueError("the token may hold printable ASCII characters without spaces only")
        if self.no_auth and (token or self.token_file is not None):
            raise ValueError("a token and no-auth were both given: drop one of them")
        if token and self.token_file is not None:
            raise ValueError("a token and a token-file were both given: drop one of them")
        if token == "" and not self.no_auth:
            raise ValueError("the token is empty: say no-auth as well to serve without one, or unset it")
        if not is_loopback(self.host):
            if not self.allow_remote:
                raise ValueError(
                    "host is not a loopback address, so other machines could connect: "
                    "use 127.0.0.1, or say allow-remote as well"
                )
            if self.no_auth:
                raise ValueError("a host that other machines can reach needs a token: drop no-auth")
        return self

    @model_validator(mode="after")
    def _take_exact_names(self) -> Self:
        if any("*" in name or "/" in name for name in self.allowed_hosts):
            raise ValueError("allowed-hosts takes exact names, no patterns")
        if not all(_ORIGIN.fullmatch(origin.lower()) for origin in self.allowed_origins):
            raise ValueError("allowed-origins takes addresses such as https://devbox.lan:8443, no patterns and no path")
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls-cert and tls-key need each other")
        return self

    @model_validator(mode="after")
    def _send_prompts_only_where_meant(self) -> Self:
        if self.upstream is None:
            if self.upstream_model is not None or self.upstream_token_file is not None:
                raise ValueError("upstream-model and upstream-token-file need an upstream")
            return self
        try:
            url = checked_url(self.upstream, plain=self.upstream_unencrypted)
        except TargetError as error:
            raise ValueError(f"upstream: {error}") from None
        if self.replicas is not None:
            raise ValueError("replicas and an upstream were both given: with an upstream no weights are opened here")
        if self.model is None:
            raise ValueError("upstream needs a model: the folder with its config.json and tokenizer files")
        if self.offline and not is_loopback(urlsplit(url).hostname or ""):
            raise ValueError("offline and an upstream on another machine were both given: drop one of them")
        return self

    @property
    def upstream_host(self) -> str | None:
        """Where prompts go, as people see it; None where they go nowhere."""
        return None if self.upstream is None else host_of(self.upstream)

    def hosts(self) -> list[str]:
        """Names that the Host header may carry, without ports."""
        names = ["127.0.0.1", "localhost", "[::1]", *self.allowed_hosts]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return names if own in names else [*names, own]


def is_sendable(token: str) -> bool:
    """Whether a header can carry the token."""
    return token.isascii() and all(c.isprintable() and c != " " for c in token)
