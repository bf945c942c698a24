"""Which server an editor window talks to: the configured one, else a running one, else one that is started now."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from calomel.suggest import runtime_file
from calomel.suggest.completer import PROTOCOL_VERSION, Completer, CompleterError
from calomel.suggest.model_info import version
from calomel.suggest.remote import Endpoint, HttpCompleter
from calomel.suggest.runtime_file import RuntimeFileError, ServerRecord
from calomel.suggest.start import Wish, start_server
from calomel.weights import nano_path
from calomel.weights.identity import weights_id

_MAX_TOKEN_BYTES: Final = 4096
_NAME_CHARACTERS: Final = 16


class ServerWish(Protocol):
    """What the user wants of the server; `calomel.workspace.settings.ServerSettings` is one."""

    @property
    def url(self) -> str | None:
        """Of a server to use as it is; None to share one of this machine."""

    @property
    def token(self) -> str | None:
        """For `url`."""

    @property
    def token_file(self) -> Path | None:
        """A file that holds the token for `url`."""

    @property
    def model(self) -> Path | None:
        """Checkpoint folder; None for the shipped one."""

    @property
    def device(self) -> str:
        """`cpu`, `cuda` or `cuda:N`."""

    @property
    def idle_minutes(self) -> float:
        """After which a started server ends by itself."""


async def connect(settings: ServerWish, folders: Sequence[Path] = ()) -> Completer:
    """A completer for these settings; returns at once, and finds or starts the server in the background.

    `info()` of it waits until the model is loaded, and raises why it is not.

    Args:
        settings: which server.
        folders: of the workspace that is asked about; the server is told that it is the same one, and not which.

    Raises CompleterError for settings that cannot work, such as an address that is none or a missing token file.
    """
    if settings.url is not None:
        if not _is_address(settings.url):
            raise CompleterError("refused", "server.url is no address such as http://127.0.0.1:8017")
        endpoint = Endpoint(settings.url.rstrip("/"), _token(settings))

        async def configured() -> Endpoint:
            return endpoint

        return HttpCompleter(configured, session_name(folders))

    async def shared() -> Endpoint:
        return await asyncio.to_thread(find_or_start, settings)

    return HttpCompleter(shared, session_name(folders))


def session_name(folders: Sequence[Path]) -> str:
    """What a server knows a workspace by: the same for the same folders, and not to be read back; empty for none."""
    if not folders:
        return ""
    paths = "\0".join(sorted(str(folder) for folder in folders))
    return hashlib.sha256(paths.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_CHARACTERS]


def find_or_start(settings: ServerWish) -> Endpoint:
    """The server of this user, version, model and device that runs; else one that is started now. Blocks.

    Raises CompleterError with the reason when none can be started.
    """
    folder = settings.model or nano_path()
    if not (folder / "config.json").is_file():
        # The server would say so, too, but seconds later, and to its log.
        raise CompleterError("failed", f"there is no model in {folder}: its config.json is missing")
    try:
        weights = weights_id(folder)
    except OSError as error:
        raise CompleterError("failed", f"the model folder {folder} cannot be read ({error.strerror})") from None
    wish = Wish(settings.model, weights, settings.device, settings.idle_minutes, shared_path(weights, settings.device))
    found = running(wish)
    record = found if found is not None else start_server(wish, lambda: running(wish))
    return Endpoint(record.url, record.token)


def shared_path(weights: str, device: str) -> Path:
    """The runtime file of the shared server: one for each version, model and device, so that none replaces another."""
    key = "\0".join((str(PROTOCOL_VERSION), version(), weights, device))
    name = hashlib.sha256(key.encode()).hexdigest()[:_NAME_CHARACTERS]
    return runtime_file.runtime_folder() / f"engine-{name}.json"


def running(wish: Wish) -> ServerRecord | None:
    """A running server that does what is wished: the shared one, or one that the user started himself."""
    for path in (wish.path, runtime_file.default_path()):
        try:
            record = runtime_file.read(path)
        except RuntimeFileError:
            # Not to be believed: as if it were not there. Whoever starts a server is told when it is in the way.
            continue
        if record is not None and _fits(record, wish) and record.alive():
            return record
    return None


def _fits(record: ServerRecord, wish: Wish) -> bool:
    mine = (PROTOCOL_VERSION, version(), wish.weights, wish.device)
    # A certificate that the user gave his own server is rarely one that programs believe.
    plain = record.url.startswith("http://")
    return plain and (record.protocol, record.version, record.weights, record.device) == mine


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _token(settings: ServerWish) -> str | None:
    if settings.token_file is None:
        return settings.token
    try:
        with settings.token_file.open("rb") as file:
            data = file.read(_MAX_TOKEN_BYTES)
        return data.decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no ASCII text"
        raise CompleterError("refused", f"server.token_file {settings.token_file} cannot be read: {reason}") from None
