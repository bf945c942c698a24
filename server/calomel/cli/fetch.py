"""Fetches a model from a hub: data only, of one revision, whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from calomel.cli.errors import CommandError
from calomel.server.model_folders import NAME, REPOSITORY, is_model, models_folder

SOURCE_FILE: Final = "calomel-source.json"
# Weights that are data (no pickle can hide in them), and what says how to read them. No Python, ever.
WANTED: Final = (
    "*.safetensors",
    "*.safetensors.index.json",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "calibrator.json",
    "recall.json",
    "LICENSE*",
    "README.md",
    "MODEL_CARD.md",
)
_COMMIT: Final = 40


class FetchError(CommandError):
    """The model could not be fetched; the message says why."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A model that was fetched.

    Attributes:
        path: its folder.
        revision: the commit.
    """

    path: Path
    revision: str


def fetch(repository: str, revision: str | None, name: str | None) -> Fetched:
    """Fetch `repository` (owner/name) at `revision` (None: the newest) into the models folder. Raises FetchError."""
    if not REPOSITORY.fullmatch(repository) or ".." in repository:
        raise FetchError("a repository is named as owner/name")
    target = name or repository.replace("/", "--")
    if not NAME.fullmatch(target):
        raise FetchError("a model's name may hold letters, digits, '.', '_' and '-' only")
    place = models_folder() / target
    if place.exists():
        raise FetchError(f"{place} is there already: remove it, or choose another --name")
    if any(os.environ.get(each, "") not in {"", "0"} for each in ("HF_HUB_OFFLINE", "CALOMEL_OFFLINE")):
        raise FetchError("offline is set in the environment: nothing is fetched")
    draft = place.with_name(f".{target}.{os.getpid()}")
    try:
        commit = _download(repository, revision, draft)
        _keep_data_only(draft)
        if not is_model(draft):
            raise FetchError(f"{repository} has no config.json with weights as .safetensors")
        said = {"repository": repository, "revision": commit}
        (draft / SOURCE_FILE).write_text(json.dumps(said) + "\n", encoding="utf-8")
        draft.rename(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return Fetched(place, commit)


def read_source(folder: Path) -> str:
    """Where a fetched model came from; empty for one that was not fetched."""
    try:
        said = json.loads((folder / SOURCE_FILE).read_text(encoding="utf-8"))
        return f"{said['repository']}@{said['revision']}"
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _download(repository: str, revision: str | None, draft: Path) -> str:
    try:
        import httpx
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
    except ModuleNotFoundError:
        raise FetchError("huggingface_hub is not installed: pip install 'calomel[hub]' brings it") from None
    try:
        # A branch or a tag may move between the look and the download; a commit does not.
        found = HfApi().model_info(repository, revision=revision)
        commit = str(found.sha)
        if len(commit) != _COMMIT:
            raise FetchError("the hub did not say which commit this is")
        _check_names([file.rfilename for file in found.siblings or ()], repository)
        draft.mkdir(mode=0o755, parents=True)
        snapshot_download(repository, revision=commit, local_dir=draft, allow_patterns=list(WANTED))
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        raise FetchError(f"the hub refused {repository} (status {status}): check name, revision and access") from None
    except (httpx.HTTPError, LocalEntryNotFoundError, OSError) as error:
        raise FetchError(f"the hub cannot be reached or the disk not written ({type(error).__name__})") from None
    return commit


def _check_names(names: Sequence[str], repository: str) -> None:
    """Refuse before anything is downloaded what could not be used, or would lie elsewhere."""
    if any(PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts for name in names):
        raise FetchError(f"{repository} has files with names that lead out of it")
    if not any(name.endswith(".safetensors") and "/" not in name for name in names):
        raise FetchError(f"{repository} has no weights as .safetensors; other formats can run code, and are not read")


def _keep_data_only(folder: Path) -> None:
    """Remove what the download left beside the model: its own bookkeeping, and any link or folder."""
    for each in sorted(folder.iterdir()):
        if each.is_symlink() or each.is_dir() or not any(each.match(pattern) for pattern in WANTED):
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
