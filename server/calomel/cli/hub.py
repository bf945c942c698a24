"""One GGUF file from the Hugging Face hub: chosen by its name, checked by its hash, continued after a break."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from calomel.cli.output import CommandError, say
from calomel.storage import only_one, open_regular
from calomel.weights import gguf_in
from calomel.weights.folders import NAME

SOURCE_FILE: Final = "calomel-source.json"
_GB: Final = 1e9
_CHUNK: Final = 1 << 20
_PART: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_SHOWN: Final = 20
_UNNAMED: Final = re.compile(r"(?:i?q\d\w*|f16|f32|bf16)\.gguf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size: int
    sha256: str
    commit: str


def fetch_gguf(repository: str, revision: str | None, wanted: str, place: Path) -> str:
    """Fetch one file into the new folder `place`; returns the commit that it is of.

    Args:
        repository: its owner and name.
        revision: a branch, tag or commit; None for the newest.
        wanted: the name of the file, or the part of it that names the quantisation (`Q8_0`).
        place: a folder that does not exist; until the file is whole and checked, another one has it.

    Raises CommandError.
    """
    try:
        from huggingface_hub import HfApi, hf_hub_download
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ModuleNotFoundError:
        raise CommandError(
            "the package huggingface_hub is missing", "install Calomel's extra `hub`: see docs/install.md#extras"
        ) from None
    # A token that another program stored is not for this one.
    endpoint, token = os.environ.get("HF_ENDPOINT") or None, os.environ.get("HF_TOKEN") or False
    if not sys.stderr.isatty():
        disable_progress_bars()
    draft = place.with_name(f".{place.name}.part")
    draft.mkdir(mode=0o755, parents=True, exist_ok=True)
    with only_one(draft.with_suffix(".lock")) as ours:
        if not ours:
            raise CommandError(f"another command is fetching {place.name}")
        try:
            info = HfApi(endpoint, token).model_info(repository, revision=revision, files_metadata=True)
            file = _chosen(repository, info, wanted)
            _check_room(file, draft)
            card: Any = info.card_data or {}
            licence = card.get("license") or "not named: read the model's card"
            say(f"{file.name}: {file.size / _GB:.2f} GB, licence {licence}")
            hf_hub_download(
                repository, file.name, revision=file.commit, local_dir=draft, endpoint=endpoint, token=token
            )
        except CommandError:
            raise
        except HfHubHTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            raise CommandError(
                f"the hub refused {repository} (status {status})", "check name, revision and access"
            ) from None
        except Exception as error:
            # Which errors pass through depends on what the library is made of, and changes from version to version.
            raise CommandError(
                f"the download broke off ({type(error).__name__})", "run the same command again: it continues"
            ) from error
        _take(file, draft, place, {"repository": repository, "revision": file.commit, "file": file.name})
    with contextlib.suppress(OSError):
        draft.with_suffix(".lock").unlink()
    return file.commit


def _chosen(repository: str, info: Any, wanted: str) -> _File:
    there = [each for each in info.siblings or () if each.rfilename.endswith(".gguf")]
    ending = re.compile(rf"(?:^|[-._/]){re.escape(wanted)}\.gguf$", re.IGNORECASE)
    found = [each for each in there if each.rfilename == wanted] or [
        each for each in there if ending.search(each.rfilename)
    ]
    if len(found) != 1:
        names = ", ".join(each.rfilename for each in (found or there)[:_SHOWN]) or "no GGUF file"
        raise CommandError(f"{repository} has {len(found) or 'no'} files {wanted}", f"--gguf with one of {names}")
    (one,) = found
    path = PurePosixPath(one.rfilename)
    if path.is_absolute() or ".." in path.parts or not NAME.fullmatch(path.name):
        raise CommandError(f"{repository} contains file names that lead outside it")
    if _PART.search(path.name):
        raise CommandError(f"{path.name} is one of several parts", "choose a file that is whole")
    if one.lfs is None or not one.size:
        raise CommandError(f"the hub does not tell the size and the hash of {one.rfilename}")
    return _File(one.rfilename, int(one.size), str(one.lfs.sha256), str(info.sha))


def _check_room(file: _File, draft: Path) -> None:
    there = sum(each.lstat().st_size for each in draft.rglob("*") if each.is_file())
    free = shutil.disk_usage(draft).free
    if file.size - there > free:
        raise CommandError(
            f"{file.name} has {file.size / _GB:.2f} GB, and {free / _GB:.2f} GB are free in {draft.parent}"
        )


def _take(file: _File, draft: Path, place: Path, source: dict[str, str]) -> None:
    """Check what was fetched, and make it a model. Raises CommandError."""
    fetched = draft / file.name
    digest = hashlib.sha256()
    with open_regular(fetched) as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    if fetched.is_symlink() or digest.hexdigest() != file.sha256 or gguf_in(fetched) is None:
        shutil.rmtree(draft)
        raise CommandError(f"{file.name} is not what the hub announced, and was deleted", "fetch it again")
    # A model's format is known by its name, and some files have none but their quantisation.
    named = _model_of(source["repository"])
    final = draft / (f"{named}-{fetched.name}" if _UNNAMED.fullmatch(fetched.name) else fetched.name)
    fetched.rename(final)
    _clear(draft, [final])
    (draft / SOURCE_FILE).write_text(json.dumps(source) + "\n", encoding="utf-8")
    draft.rename(place)


def _model_of(repository: str) -> str:
    """What a repository calls its model."""
    return re.sub(r"[-_]gguf$", "", repository.rpartition("/")[2], flags=re.IGNORECASE)


def _clear(folder: Path, kept: Sequence[Path]) -> None:
    for each in folder.iterdir():
        if each not in kept:
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()
