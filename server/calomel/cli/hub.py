"""One GGUF file from the Hugging Face hub: chosen by its name, checked by its hash, continued after a break."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from calomel.cli.output import CommandError, console, say
from calomel.storage import only_one, open_regular
from calomel.weights import gguf_in
from calomel.weights.folders import NAME

if TYPE_CHECKING:
    from httpx import Client

SOURCE_FILE: Final = "calomel-source.json"
_GB: Final = 1e9
_CHUNK: Final = 1 << 20
_PART: Final = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_SHOWN: Final = 20
_HUB: Final = "https://huggingface.co"
_SECONDS: Final = 30.0
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_UNNAMED: Final = re.compile(r"(?:i?q\d\w*|f16|f32|bf16)\.gguf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    size: int
    sha256: str
    commit: str
    licence: str


def fetch_gguf(repository: str, revision: str | None, wanted: str, place: Path, *, lines: bool = False) -> str:
    """Fetch one file into the new folder `place`; returns the commit that it is of.

    Args:
        repository: its owner and name.
        revision: a branch, tag or commit; None for the newest.
        wanted: the name of the file, or the part of it that names the quantisation (`Q8_0`).
        place: a folder that does not exist; until the file is whole and checked, another one has it.
        lines: for a program: tell each step as a line of JSON, and wait for a line that agrees before the download.

    Raises CommandError.
    """
    import httpx

    hub = (os.environ.get("HF_ENDPOINT") or _HUB).rstrip("/")
    # A token that another program stored is not for this one.
    token = os.environ.get("HF_TOKEN")
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {token}"} if token else {})}
    draft = place.with_name(f".{place.name}.part")
    draft.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (
        only_one(draft.with_suffix(".lock")) as ours,
        httpx.Client(headers=headers, follow_redirects=True, timeout=_SECONDS) as client,
    ):
        if not ours:
            raise CommandError(f"another command is fetching {place.name}")
        with _explained(repository, "the hub does not answer", "check the network, and your proxy in HTTPS_PROXY"):
            at = f"/revision/{quote(revision, safe='')}" if revision else ""
            told = client.get(f"{hub}/api/models/{repository}{at}", params={"blobs": "true"}).raise_for_status().json()
            file = _chosen(repository, told, wanted)
        part = draft / f"{file.sha256}.part"
        free = _check_room(file, part)
        if lines:
            _tell(file=file.name, size=file.size, licence=file.licence, free=free)
            if not sys.stdin.readline():
                raise CommandError(f"{file.name} was not fetched")
        else:
            say(f"{file.name}: {file.size / _GB:.2f} GB, licence {file.licence}")
        with (
            _explained(repository, "the download broke off", "fetch it again: it continues"),
            _bar(file, lines) as tell,
        ):
            _download(client, f"{hub}/{repository}/resolve/{file.commit}/{quote(file.name)}", part, file.size, tell)
        _take(file, part, place, {"repository": repository, "revision": file.commit, "file": file.name})
    with contextlib.suppress(OSError):
        draft.with_suffix(".lock").unlink()
    return file.commit


@contextlib.contextmanager
def _explained(repository: str, what: str, hint: str) -> Iterator[None]:
    """Turn what goes wrong with the hub into a CommandError; `what` is for all but a refusal."""
    import httpx

    try:
        yield
    except httpx.HTTPStatusError as error:
        raise CommandError(
            f"the hub refused {repository} (status {error.response.status_code})", "check name, revision and access"
        ) from None
    except (httpx.HTTPError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise CommandError(f"{what} ({type(error).__name__})", hint) from error


@contextlib.contextmanager
def _bar(file: _File, lines: bool) -> Iterator[Callable[[int], None]]:
    """What is told how many bytes are there."""
    if lines:
        yield lambda done: _tell(done=done)
        return
    from rich.progress import DownloadColumn, Progress, TimeRemainingColumn

    shown = console(stderr=True, wrap=True)
    columns = (*Progress.get_default_columns()[:-1], DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=shown, disable=not shown.is_terminal) as progress:
        task = progress.add_task("", total=file.size)
        yield lambda done: progress.update(task, completed=done)


def _tell(**what: object) -> None:
    say(json.dumps(what), verbatim=True)
    sys.stdout.flush()


def _download(client: Client, url: str, part: Path, size: int, tell: Callable[[int], None]) -> None:
    """Write what is missing behind the bytes that are there, and again after each break that brought some.

    Raises httpx.HTTPError.
    """
    import httpx

    while (done := part.stat().st_size if part.is_file() else 0) < size:
        before = done
        trouble: httpx.TransportError = httpx.ReadError("the answer is empty")
        try:
            rest = {"Range": f"bytes={done}-"} if done else {}
            with part.open("ab") as out, client.stream("GET", url, headers=rest) as answer:
                answer.raise_for_status()
                if answer.status_code != httpx.codes.PARTIAL_CONTENT:
                    out.truncate(0)
                    done = 0
                for piece in answer.iter_raw(_CHUNK):
                    out.write(piece[: size - done])
                    done += len(piece)
                    tell(min(done, size))
                    if done >= size:
                        return
        except httpx.TransportError as error:
            trouble = error
        if done <= before:
            raise trouble


def _chosen(repository: str, told: Any, wanted: str) -> _File:
    there = {str(each["rfilename"]): each for each in told["siblings"] if str(each["rfilename"]).endswith(".gguf")}
    ending = re.compile(rf"(?:^|[-._/]){re.escape(wanted)}\.gguf$", re.IGNORECASE)
    found = [name for name in there if name == wanted] or [name for name in there if ending.search(name)]
    if len(found) != 1:
        names = ", ".join((found or list(there))[:_SHOWN]) or "no GGUF file"
        raise CommandError(f"{repository} has {len(found) or 'no'} files {wanted}", f"--gguf with one of {names}")
    (name,) = found
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not NAME.fullmatch(path.name):
        raise CommandError(f"{repository} contains file names that lead outside it")
    if _PART.search(path.name):
        raise CommandError(f"{path.name} is one of several parts", "choose a file that is whole")
    lfs = there[name].get("lfs") or {}
    sha256, size = str(lfs.get("sha256")), lfs.get("size")
    if not _SHA256.fullmatch(sha256) or not isinstance(size, int) or size <= 0:
        raise CommandError(f"the hub does not tell the size and the hash of {name}")
    licence = (told.get("cardData") or {}).get("license") or "not named: read the model's card"
    return _File(name, size, sha256, str(told["sha"]), str(licence))


def _check_room(file: _File, part: Path) -> int:
    """The free bytes of the disk. Raises CommandError if they are too few."""
    there = part.stat().st_size if part.is_file() else 0
    folder = part.parents[1]
    free = shutil.disk_usage(folder).free
    if file.size - there > free:
        raise CommandError(f"{file.name} has {file.size / _GB:.2f} GB, and {free / _GB:.2f} GB are free in {folder}")
    return free


def _take(file: _File, part: Path, place: Path, source: dict[str, str]) -> None:
    """Check what was fetched, and make it a model. Raises CommandError."""
    draft, digest = part.parent, hashlib.sha256()
    with open_regular(part) as opened:
        while chunk := opened.read(_CHUNK):
            digest.update(chunk)
    final = draft / PurePosixPath(file.name).name
    part.rename(final)
    if digest.hexdigest() != file.sha256 or gguf_in(final) is None:
        shutil.rmtree(draft)
        raise CommandError(f"{file.name} is not what the hub announced, and was deleted", "fetch it again")
    # A model's format is known by its name, and some files have none but their quantisation.
    if _UNNAMED.fullmatch(final.name):
        final = final.rename(draft / f"{_model_of(source['repository'])}-{final.name}")
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
