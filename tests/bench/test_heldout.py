from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

from calomel.report.heldout import HELDOUT, BenchDataError, HeldoutFile, read_heldout


def write(path: Path, *rows: dict[str, str]) -> Path:
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


def row(path: str, language: str, text: str = "x = 1\n") -> dict[str, str]:
    return {"package": "p", "ecosystem": "e", "path": path, "language": language, "license": "MIT", "text": text}


def test_javascript_and_typescript_share_a_language(tmp_path: Path) -> None:
    source = write(tmp_path / "h.zst", row("a.js", "javascript"), row("b.ts", "TypeScript"), row("c.py", "python"))
    assert [(file.path, file.language) for file in read_heldout(source)] == [
        ("c.py", "python"),
        ("a.js", "typescript"),
        ("b.ts", "typescript"),
    ]


def test_other_languages_and_carriage_returns_are_left_out(tmp_path: Path) -> None:
    source = write(tmp_path / "h.zst", row("a.rb", "ruby"), row("b.py", "python", "x\r\n"), row("c.py", "python"))
    assert read_heldout(source) == (HeldoutFile("p", "c.py", "python", "x = 1\n"),)


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchDataError, match=r"nothing\.zst does not exist"):
        read_heldout(tmp_path / "nothing.zst")


@pytest.mark.parametrize("content", [b"no zstandard", zstandard.compress(b"{no json"), zstandard.compress(b"{}\n")])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.zst"
    path.write_bytes(content)
    with pytest.raises(BenchDataError, match="is damaged"):
        read_heldout(path)


def test_the_committed_files_cover_the_four_languages() -> None:
    if not HELDOUT.exists():
        pytest.skip("the held-out files are not in this checkout")
    assert {file.language for file in read_heldout()} == {"python", "typescript", "go", "rust"}
