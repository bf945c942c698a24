from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from calomel.training.corpus import packages as archives
from calomel.training.corpus.packages import ArchiveError, read_members


def write_tgz(path: Path, *entries: tarfile.TarInfo) -> Path:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for entry in entries:
            tar.addfile(entry, io.BytesIO(b"x" * entry.size))
    path.write_bytes(gzip.compress(raw.getvalue()))
    return path


def regular(name: str, size: int = 3) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size = size
    return info


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py", "..\\evil.py", "C:/evil.py"])
def test_a_path_that_leaves_the_archive_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArchiveError, match="unsafe path"):
        list(read_members(write_tgz(tmp_path / "x.tgz", regular(name))))
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(name, "text")
    with pytest.raises(ArchiveError, match="unsafe path"):
        list(read_members(tmp_path / "x.whl"))


def test_links_are_not_followed(tmp_path: Path) -> None:
    link = tarfile.TarInfo("package/passwd.js")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = write_tgz(tmp_path / "x.tgz", link, regular("package/a.js"))
    assert [member.path for member in read_members(archive)] == ["package/a.js"]


def test_a_link_inside_a_wheel_is_not_read(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("link.py")
    info.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as wheel:
        wheel.writestr(info, "/etc/passwd")
    assert list(read_members(tmp_path / "x.whl")) == []


def test_files_over_the_member_limit_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 10)
    archive = write_tgz(tmp_path / "x.tgz", regular("large.js", 11), regular("small.js", 10))
    assert [member.path for member in read_members(archive)] == ["small.js"]


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_TAR_BYTES", 15)
    with pytest.raises(ArchiveError, match="unpacks to more"):
        list(read_members(write_tgz(tmp_path / "x.tgz", regular("a.js", 10), regular("b.js", 10))))


@pytest.mark.parametrize("suffix", [".whl", ".tgz"])
def test_damaged_archives_are_reported_by_name(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(b"not an archive at all")
    with pytest.raises(ArchiveError):
        list(read_members(path))
