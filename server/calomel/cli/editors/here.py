"""What is needed to set up any editor: where things are on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.server.settings import ServerSettings
from calomel.suggest.loopback import is_loopback

# Editors' folders of a source checkout; an installed package has none.
_CHECKOUT: Final = Path(__file__).parents[4]
_EVERYWHERE: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 (what is compared with, not listened on)


@dataclass(frozen=True, slots=True)
class Here:
    """This machine.

    Attributes:
        home: the user's folder.
        config: where programs keep settings (`~/.config`).
        mac: it is a Mac; Linux otherwise.
        program: `calomel`, as an absolute path where it is known: editors started from a menu have another PATH.
        url: of the server, without a path; None when none runs and its port is left to chance.
        token: the file that holds the token; None when the server wants none, or it is in the environment.
        plugins: the folder `editors` of a source checkout; None where there is none.
    """

    home: Path
    config: Path
    mac: bool
    program: str
    url: str | None
    token: Path | None
    plugins: Path | None

    @property
    def support(self) -> Path:
        """Where programs with windows keep settings."""
        return self.home / "Library" / "Application Support" if self.mac else self.config


def here(settings: ServerSettings, environment: Mapping[str, str] = os.environ) -> Here:
    """This machine, for the server that these settings describe or that runs already."""
    home = Path(environment.get("HOME") or Path.home())
    plugins = _CHECKOUT / "editors"
    return Here(
        home=home,
        config=Path(environment.get("XDG_CONFIG_HOME") or home / ".config"),
        mac=sys.platform == "darwin",
        program=_program(),
        url=_running(settings) or configured(settings),
        token=_token(settings),
        plugins=plugins if plugins.is_dir() else None,
    )


def configured(settings: ServerSettings) -> str | None:
    """The address that clients of this machine use."""
    if settings.port == 0:
        return None
    host = "127.0.0.1" if settings.host in _EVERYWHERE or is_loopback(settings.host) else settings.host
    host = f"[{host}]" if ":" in host else host
    return f"{'http' if settings.tls_cert is None else 'https'}://{host}:{settings.port}"


def _running(settings: ServerSettings) -> str | None:
    from calomel.suggest import runtime_file
    from calomel.suggest.runtime_file import RuntimeFileError

    try:
        record = runtime_file.read(settings.runtime_file or runtime_file.default_path())
    except RuntimeFileError:
        return None
    return record.url if record is not None and record.alive() else None


def _token(settings: ServerSettings) -> Path | None:
    from calomel.server import tokens

    if settings.no_auth or settings.token is not None:
        return None
    return settings.token_file or tokens.default_path()


def _program() -> str:
    beside = Path(sys.executable).with_name("calomel")
    found = str(beside) if beside.is_file() else shutil.which("calomel")
    return os.path.abspath(found) if found else "calomel"  # noqa: PTH100 (a link in ~/.local/bin outlives its target)
