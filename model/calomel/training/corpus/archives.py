"""Reads the regular files of wheels, npm tarballs and Debian packages, never unpacking to disk.

Archives come from outside, so each limit here is a refusal: no links or devices are followed, no
path may climb out of the archive, and sizes are checked on the bytes read, not on the header.
"""

import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, cast

import zstandard

from calomel.training.corpus.errors import ArchiveError

# Bytes. A source file worth training on is far smaller; the rest is skipped unread.
MAX_MEMBER_BYTES = 2_000_000
# Bytes of everything read from one archive: far above any source package, far below a zip bomb.
MAX_TOTAL_BYTES = 1_000_000_000
# Bytes on either side of an archive's compressed tar.
MAX_TAR_BYTES = 2_000_000_000
# Entries in one archive.
MAX_MEMBERS = 200_000

_AR_MAGIC = b"!<arch>\n"
_AR_HEADER_BYTES = 60


@dataclass(frozen=True, slots=True)
class Member:
    """One regular file of an archive; `path` is relative, with forward slashes."""

    path: str
    content: bytes


def read_members(archive: Path) -> Iterator[Member]:
    """Yield an archive's regular files of at most MAX_MEMBER_BYTES, in archive order.

    The kind is told by the file's name: .whl, .tgz or .deb.
    Raises ArchiveError when the archive is malformed, unsafe or over a limit.
    """
    readers = {".whl": _read_zip, ".tgz": _read_tgz, ".deb": _read_deb}
    reader = readers.get(archive.suffix)
    if reader is None:
        raise ArchiveError(f"{archive.name}: not a .whl, .tgz or .deb")
    total = 0
    try:
        for count, member in enumerate(reader(archive)):
            total += len(member.content)
            if count >= MAX_MEMBERS or total > MAX_TOTAL_BYTES:
                raise ArchiveError(f"{archive.name}: too large to be a source package")
            yield member
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        lzma.LZMAError,
        gzip.BadGzipFile,
        zstandard.ZstdError,
        EOFError,
    ) as error:
        raise ArchiveError(f"{archive.name}: {error}") from error


def safe_path(name: str) -> str:
    """Return a member's normal relative path; raise ArchiveError when it would leave the archive."""
    path = PurePosixPath(name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ArchiveError(f"unsafe path in archive: {name!r}")
    if path.parts and path.parts[0].endswith(":"):
        raise ArchiveError(f"unsafe path in archive: {name!r}")
    return str(path)


def _read_zip(archive: Path) -> Iterator[Member]:
    with zipfile.ZipFile(archive) as wheel:
        for info in wheel.infolist():
            path = safe_path(info.filename)
            # The upper 16 bits hold the Unix mode: links in a zip are files of that type.
            kind = (info.external_attr >> 16) & 0o170000
            if info.is_dir() or kind not in (0, 0o100000):
                continue
            if info.file_size > MAX_MEMBER_BYTES:
                continue
            with wheel.open(info) as file:
                content = file.read(MAX_MEMBER_BYTES + 1)
            if len(content) <= MAX_MEMBER_BYTES:
                yield Member(path, content)


def _read_tgz(archive: Path) -> Iterator[Member]:
    with gzip.open(archive) as stream:
        yield from _read_tar(cast("IO[bytes]", stream))


def _read_deb(archive: Path) -> Iterator[Member]:
    with archive.open("rb") as deb:
        if deb.read(len(_AR_MAGIC)) != _AR_MAGIC:
            raise ArchiveError(f"{archive.name}: not a Debian package")
        while header := deb.read(_AR_HEADER_BYTES):
            name, size = _ar_entry(header, archive)
            if name.startswith("data.tar"):
                data = io.BytesIO(deb.read(min(size, MAX_TAR_BYTES)))
                yield from _read_tar(_decompressed(name, data, archive))
                return
            # Entries start on even offsets.
            deb.seek(size + size % 2, io.SEEK_CUR)
    raise ArchiveError(f"{archive.name}: no data.tar inside")


def _ar_entry(header: bytes, archive: Path) -> tuple[str, int]:
    try:
        return header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
    except ValueError as error:
        raise ArchiveError(f"{archive.name}: malformed ar header") from error


def _decompressed(name: str, data: IO[bytes], archive: Path) -> IO[bytes]:
    match name.removeprefix("data.tar"):
        case ".xz":
            return cast("IO[bytes]", lzma.open(data))
        case ".gz":
            return cast("IO[bytes]", gzip.open(data))
        case ".zst":
            return cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(data))
        case "":
            return data
        case other:
            raise ArchiveError(f"{archive.name}: unknown compression {other!r}")


def _read_tar(stream: IO[bytes]) -> Iterator[Member]:
    unpacked = 0
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for info in tar:
            path = safe_path(info.name)
            unpacked += info.size
            if unpacked > MAX_TAR_BYTES:
                raise ArchiveError(f"{path}: archive unpacks to more than {MAX_TAR_BYTES} bytes")
            if not info.isreg() or info.size > MAX_MEMBER_BYTES:
                continue
            file = tar.extractfile(info)
            if file is not None:
                yield Member(path, file.read())
