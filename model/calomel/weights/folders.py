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

from calomel.weights import gguf_in, nano_path
from calomel.weights.gguf import GgufError, gguf_of, gguf_of_others, unfolded

SHIPPED: Final = "nano"
# No separator, no leading dot, nothing with a special meaning in a shell or file system.
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
# `owner/name` of a hub.
REPOSITORY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}")

Source = Literal["shipped", "models folder", "hub cache", "Ollama", "LM Studio"]


class ModelNameError(ValueError):
    """No model has this name; the message says where it was looked for."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model on this machine.

    Attributes:
        name: the argument of `--model`.
        path: its folder, or its GGUF file.
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
    path, if it exists; else what was fetched from a hub under that name. Then come the models of Ollama (`name:tag`)
    and LM Studio (`owner/name`). For a GGUF file it is the folder that stands for it, see `gguf.unfolded`.

    Raises:
        ModelNameError: nothing has this name, it leads out of the models folder, or a GGUF file cannot be opened here.
    """
    text = SHIPPED if model is None else str(model)
    if text == SHIPPED and (model is None or not Path(text).is_dir()):
        return None
    try:
        place = place_of(text)
        packed = None if (place / "config.json").is_file() else gguf_in(place)
        return place if packed is None else unfolded(packed, text if packed.suffix != ".gguf" else None)
    except GgufError as error:
        raise ModelNameError(str(error)) from error


def place_of(name: str) -> Path:
    """The folder or GGUF file that `folder_of` finds under a name. Raises ModelNameError, GgufError."""
    path = Path(name).expanduser()
    found = named(name.replace("/", "--"))
    if path.exists() and (found is None or "/" in name):
        return path
    found = found or cached(name) or gguf_of(name)
    if found is None and NAME.fullmatch(name):
        raise ModelNameError(
            f"found no model {name} in {models_folder()} and no folder of that name: calomel models list has the "
            "names, calomel models fetch OWNER/NAME downloads one"
        )
    if found is None and REPOSITORY.fullmatch(name):
        raise ModelNameError(f"found no folder {name}: calomel models fetch {name} fetches it from the hub")
    return found or path


def named(name: str) -> Path | None:
    """The folder of this name in the models folder. Raises ModelNameError for a link that leads out of it."""
    if not NAME.fullmatch(name):
        return None
    root = models_folder()
    folder = root / name
    if not folder.is_dir():
        return None
    if not folder.resolve().is_relative_to(root.resolve()):
        raise ModelNameError(f"{folder} is a link that leaves the models folder: give the path it points to")
    return folder


def known() -> Iterator[ModelFolder]:
    """Every model on this machine, the shipped one first."""
    yield ModelFolder(SHIPPED, nano_path(), "shipped")
    root = models_folder()
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if NAME.fullmatch(folder.name) and (is_model(folder) or gguf_in(folder) is not None):
            yield ModelFolder(folder.name, folder, "models folder")
    cache = hub_cache()
    for folder in sorted(cache.glob("models--*--*")) if cache.is_dir() else ():
        name = folder.name.removeprefix("models--").replace("--", "/", 1)
        snapshot = cached(name)
        if snapshot is not None:
            yield ModelFolder(name, snapshot, "hub cache")


def of_others() -> Iterator[ModelFolder]:
    """The GGUF files that Ollama and LM Studio have on this machine, by the names that they have there."""
    for program, name, file in gguf_of_others():
        yield ModelFolder(name, file, program)


def is_model(folder: Path) -> bool:
    """Whether a folder holds a configuration and weights."""
    return (folder / "config.json").is_file() and bool(_weights(folder))


def weights_bytes(folder: Path) -> int:
    """How large the files of weights are, as they are stored."""
    return sum(file.stat().st_size for file in _weights(folder))


def _weights(folder: Path) -> list[Path]:
    packed = gguf_in(folder)
    return list(folder.glob("*.safetensors")) if packed is None else [packed]


def why_none(place: Path) -> str:
    """One sentence: why there is no model at a place without a `config.json`, and what to do about it."""
    if place.is_file():
        return f"{place} is neither a GGUF file nor a folder with config.json, .safetensors and the tokenizer's files"
    several = [file.name for file in sorted(place.glob("*.gguf"))]
    if len(several) > 1:
        return f"{place} has several GGUF files: name one of them, {', '.join(several)}"
    return f"{place / 'config.json'} does not exist; a checkpoint folder needs config.json"


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
