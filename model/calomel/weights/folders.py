"""Where models are stored: the shipped one, the user's models folder, and what a hub's own tools have fetched.

Only this module resolves a name to a folder. Names come only from whoever starts a server, never from a request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from calomel.weights import nano_path

SHIPPED: Final = "nano"
# No separator, no leading dot, nothing with a special meaning in a shell or file system.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# `owner/name` of a hub.
REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")

# How such a file begins, also among the blobs of Ollama.
_GGUF: Final = b"GGUF"

Source = Literal["shipped", "models folder", "hub cache"]


class ModelNameError(ValueError):
    """No model has this name; the message says where it was looked for."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on this machine.

    Attributes:
        name: the argument of `--model`.
        path: its folder.
        source: where it was found.
    """

    name: str
    path: Path
    source: Source


def models_folder() -> Path:
    """The user's models (on Linux `~/.local/share/calomel/models`)."""
    import platformdirs

    return platformdirs.user_data_path("calomel", appauthor=False) / "models"


def hub_cache() -> Path:
    """Where `huggingface_hub` stores what it fetched."""
    named = os.environ.get("HF_HUB_CACHE", "")
    if named:
        return Path(named).expanduser()
    home = os.environ.get("HF_HOME", "")
    return (Path(home).expanduser() if home else Path.home() / ".cache" / "huggingface") / "hub"


def folder_of(model: Path | str | None) -> Path | None:
    """The folder of a model given by name or path; None for the shipped one.

    A bare name means one in the models folder, if it exists; else a folder below the current one. `owner/name` is a
    path, if it exists; else what was fetched from a hub under that name.

    Raises:
        ModelNameError: nothing has this name, or it leads out of the models folder.
    """
    if model is None:
        return None
    text = str(model)
    path = Path(text).expanduser()
    if text == SHIPPED and not path.is_dir():
        return None
    if NAME.fullmatch(text):
        found = named(text)
        if found is not None:
            return found
        if not path.exists():
            raise ModelNameError(f"found no model {text} in {models_folder()} and no folder of that name")
    elif REPOSITORY.fullmatch(text) and not path.exists():
        fetched = named(text.replace("/", "--")) or cached(text)
        if fetched is None:
            raise ModelNameError(f"found no folder {text}; to fetch it from the hub: calomel models fetch {text}")
        return fetched
    return path


def named(name: str) -> Path | None:
    """The folder of this name in the models folder. Raises ModelNameError for a link that leads out of it."""
    if not NAME.fullmatch(name):
        return None
    root = models_folder()
    folder = root / name
    if not folder.is_dir():
        return None
    if not folder.resolve().is_relative_to(root.resolve()):
        raise ModelNameError(f"{folder} is a link out of the models folder: give the path that it leads to")
    return folder


def known() -> Iterator[ModelFolder]:
    """Every model on this machine, the shipped one first."""
    yield ModelFolder(SHIPPED, nano_path(), "shipped")
    root = models_folder()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if NAME.fullmatch(folder.name) and is_model(folder):
            yield ModelFolder(folder.name, folder, "models folder")
    cache = hub_cache()
    for folder in sorted(cache.glob("models--*--*")) if cache.is_dir() else ():
        name = folder.name.removeprefix("models--").replace("--", "/", 1)
        snapshot = cached(name)
        if snapshot is not None:
            yield ModelFolder(name, snapshot, "hub cache")


def is_model(folder: Path) -> bool:
    """Whether a folder holds a configuration and weights in safetensors files."""
    return (folder / "config.json").is_file() and any(folder.glob("*.safetensors"))


def why_none(place: Path) -> str:
    """One sentence: why there is no model at a place without a `config.json`, and what to do about it."""
    gguf = next((file for file in (place, *sorted(place.glob("*.gguf"))) if _is_gguf(file)), None)
    if gguf is not None:
        return (
            f"{gguf} is GGUF, which llama.cpp reads: llama-server -m {gguf} --port 8080 serves it, and --upstream "
            "http://127.0.0.1:8080 asks it; in editors, server.upstream"
        )
    if place.is_file():
        return f"{place} is a file: a model is a folder with config.json, .safetensors and the tokenizer's files"
    return f"{place / 'config.json'} does not exist; a checkpoint folder needs config.json"


def _is_gguf(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_GGUF)) == _GGUF
    except OSError:
        return False


def cached(repository: str) -> Path | None:
    """The snapshot that the hub's cache has of a repository's main revision, or its only one."""
    folder = hub_cache() / ("models--" + repository.replace("/", "--"))
    snapshots = folder / "snapshots"
    try:
        revision = (folder / "refs" / "main").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        revision = ""
    if NAME.fullmatch(revision) and is_model(snapshots / revision):
        return snapshots / revision
    found = [each for each in sorted(snapshots.glob("*")) if is_model(each)]
    return found[0] if len(found) == 1 else None
