"""Every setting of the server, its default and the reason for that default.

A setting comes from a keyword argument (the command line), else from the environment variable `CALOMEL_` + its name.
"""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

MIB = 1024 * 1024


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a socket bound to `host`."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
        description="A host that other machines can reach must be asked for twice: traffic is not encrypted.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=(),
        description="Further names for the Host header. Names beyond loopback are refused: they mean DNS rebinding.",
    )
    token: SecretStr | None = Field(
        default=None,
        description="What clients send as `Authorization: Bearer`. Unset: a random one at every start.",
    )
    no_auth: bool = Field(
        default=False,
        description="Any program and any user of this machine could read completions; so it must be asked for.",
    )
    runtime_file: Path | None = Field(
        default=None,
        description="Where address, token and process id are left for the user's editors. Unset: the user's runtime "
        "folder, which other users cannot read.",
    )
    model: Path | None = Field(default=None, description="Checkpoint folder. Unset: the model that ships with Calomel.")
    device: str = Field(default="cpu", description="Runs everywhere; the shipped model needs no GPU.")
    threads: int | None = Field(default=None, ge=1, description="Unset: the engine chooses.")
    max_requests: int = Field(
        default=32,
        ge=1,
        description="Requests running or waiting at once. The engine batches 8; four rounds are about as long as an "
        "editor waits, and a longer queue only serves clients that have gone.",
    )
    max_body_bytes: int = Field(
        default=4 * MIB,
        ge=1024,
        description="32,768 tokens are about 130 KB of text; JSON escapes can make that six times as long.",
    )
    idle_minutes: float | None = Field(
        default=None,
        gt=0,
        le=10_080,
        description="End after so long without a request. Unset: stay. Editors start their shared server with it.",
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
    shutdown_seconds: int = Field(
        default=5, ge=0, description="How long running requests may go on after the server was told to stop."
    )

    @model_validator(mode="after")
    def _refuse_an_open_door(self) -> Self:
        token = None if self.token is None else self.token.get_secret_value()
        if token is not None and not (token.isascii() and all(c.isprintable() and c != " " for c in token)):
            raise ValueError("the token may hold printable ASCII characters without spaces only")
        if self.no_auth and token:
            raise ValueError("a token and no-auth were both given: drop one of them")
        if token == "" and not self.no_auth:
            raise ValueError(
                "the token is empty: say no-auth as well to serve without one, or unset it for a random one"
            )
        if not is_loopback(self.host):
            if not self.allow_remote:
                raise ValueError(
                    "host is not a loopback address, so other machines could connect: "
                    "use 127.0.0.1, or say allow-remote as well"
                )
            if self.no_auth:
                raise ValueError("a host that other machines can reach needs a token: drop no-auth")
        if any("*" in name for name in self.allowed_hosts):
            raise ValueError("allowed-hosts takes exact names, no patterns")
        return self

    def hosts(self) -> list[str]:
        """Names that the Host header may carry, without ports."""
        names = ["127.0.0.1", "localhost", "[::1]", *self.allowed_hosts]
        own = f"[{self.host}]" if ":" in self.host else self.host
        return names if own in names else [*names, own]
