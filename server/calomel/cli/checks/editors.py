"""The editors' side: is Calomel set up in Neovim, VS Code or Zed, and does it point at this server?"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from calomel.cli.checks import jsonc
from calomel.cli.checks.finding import Finding, ok, warn
from calomel.server.settings import ServerSettings
from calomel.suggest.loopback import is_loopback

_MAX_BYTES: Final = 1024 * 1024
_MAX_FILES: Final = 500
_VS_CODES: Final = {
    "VS Code": "Code",
    "VS Code Insiders": "Code - Insiders",
    "VSCodium": "VSCodium",
    "Cursor": "Cursor",
}
# Settings of Zed that hold a server's address, below `edit_predictions`, and what our server understands there.
_ZED_FORMATS: Final = frozenset(
    {"zeta2", "zeta2_1", "qwen", "star_coder", "deepseek_coder", "code_gemma", "codestral", "glm", "code_llama"}
)
_INFERRED: Final = frozenset({"zeta2", "zeta2.1"})


def vs_code_settings() -> dict[str, Mapping[str, Any]]:
    """The user's settings of VS Code and its relatives, of those that are here and can be read."""
    config = _config()
    found = {name: _settings(config / folder / "User" / "settings.json") for name, folder in _VS_CODES.items()}
    return {name: values for name, values in found.items() if values}


def _config() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")


def check_editors(settings: ServerSettings) -> Iterator[Finding]:
    """Each editor that has a configuration here."""
    config = _config()
    if shutil.which("calomel") is None:
        yield warn("editors", "no program `calomel` on the PATH: editors cannot start it", "give them its full path")
    found = [*_neovim(config / "nvim"), *_vs_codes(config, settings), *_zed(config / "zed" / "settings.json", settings)]
    yield from found
    if not found:
        yield ok("editors", "no configuration of Neovim, VS Code or Zed here")


def _neovim(folder: Path) -> Iterator[Finding]:
    if not folder.is_dir():
        return
    for number, path in enumerate(sorted([*folder.rglob("*.lua"), *folder.rglob("*.vim")])):
        if number == _MAX_FILES:
            break
        if "calomel" in _text(path):
            yield ok("Neovim", f"set up in {path}; :checkhealth calomel says more")
            return
    packages = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "nvim" / "site" / "pack"
    if any(packages.glob("*/*/calomel")):
        yield warn("Neovim", "the plugin is there, but not set up", 'require("calomel").setup() in init.lua')
    else:
        yield warn("Neovim", "Calomel is not set up", "see editors/neovim/README.md")


def _vs_codes(config: Path, settings: ServerSettings) -> Iterator[Finding]:
    for name, folder in _VS_CODES.items():
        path = config / folder / "User" / "settings.json"
        if not path.is_file():
            continue
        values = _settings(path)
        if values is None:
            yield warn(name, f"{path} cannot be read as JSON", "open it in the editor, which shows where it is wrong")
            continue
        urls = [value for key, value in values.items() if "calomel" in key and key.endswith(".url")]
        nested = values.get("calomel")
        if isinstance(nested, Mapping) and isinstance(nested.get("server"), Mapping):
            urls.append(nested["server"].get("url"))
        given = [url for url in urls if isinstance(url, str) and url]
        if given:
            yield from (_pointed(name, path, url, settings) for url in given)
        elif any("calomel" in key for key in values):
            yield ok(name, f"set up in {path}")


def _zed(path: Path, settings: ServerSettings) -> Iterator[Finding]:
    if not path.is_file():
        return
    values = _settings(path)
    predictions = None if values is None else values.get("edit_predictions")
    if values is None:
        yield warn("Zed", f"{path} cannot be read as JSON", "open it in Zed, which shows where it is wrong")
    elif not isinstance(predictions, Mapping) or predictions.get("provider") != "open_ai_compatible_api":
        yield warn(
            "Zed",
            f"edit_predictions.provider in {path} is not open_ai_compatible_api",
            "calomel editor setup zed shows what it should be, and writes it",
        )
    else:
        yield _zed_provider(path, predictions.get("open_ai_compatible_api"), settings)


def _zed_provider(path: Path, provider: object, settings: ServerSettings) -> Finding:
    if not isinstance(provider, Mapping) or not isinstance(provider.get("api_url"), str):
        return warn("Zed", f"{path} gives no api_url", "http://127.0.0.1:8017/v1/completions is this server's")
    url = str(provider["api_url"])
    if not urlsplit(url).path.endswith("/v1/completions"):
        return warn("Zed", f"api_url in {path} has another path", "it is used as it is: end it in /v1/completions")
    form, model = provider.get("prompt_format", "infer"), str(provider.get("model", ""))
    if form == "infer" and model.partition(":")[0] not in _INFERRED:
        return warn("Zed", "prompt_format cannot be inferred from this model name", 'set prompt_format to "zeta2_1"')
    if form != "infer" and form not in _ZED_FORMATS:
        return warn("Zed", "prompt_format is none that this server reads", 'set prompt_format to "zeta2_1"')
    return _pointed("Zed", path, url, settings)


def _pointed(name: str, path: Path, url: str, settings: ServerSettings) -> Finding:
    """Whether an address in an editor's settings is this server's."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return warn(name, f"{path} has an address that is none", "http://127.0.0.1:8017 is this server's")
    if parts.hostname is None or not is_loopback(parts.hostname):
        return ok(name, f"set up in {path}, for a server on another machine")
    wanted = "http" if settings.tls_cert is None else "https"
    if port != settings.port or parts.scheme != wanted:
        return warn(
            name,
            f"{path} points at {parts.scheme} port {port}, the server listens with {wanted} on port {settings.port}",
            "change one of them",
        )
    return ok(name, f"set up in {path}")


def _settings(path: Path) -> Mapping[str, Any] | None:
    try:
        values = jsonc.loads(_text(path) or "{}")
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, Mapping) else None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode(errors="replace")
    except OSError:
        return ""
