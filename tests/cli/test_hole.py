from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.cli.errors import InputError
from calomel.cli.fill import Hole, offset_of


@given(st.text(alphabet="ab\n\tü😀"), st.data())
def test_every_place_of_a_text_is_found_again(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    before = text[:offset].split("\n")
    assert offset == offset_of(text, f"{len(before)}:{len(before[-1]) + 1}", "--at")


@pytest.mark.parametrize(
    "wrong", ["", "3", "3:", ":3", "0:1", "1:0", "00:1", "-1:2", "1:2:3", "a:b", "²:1", "1234567890:1"]
)
def test_malformed_place_names_the_option(wrong: str) -> None:
    with pytest.raises(InputError, match=r"--at .*LINE:COLUMN"):
        offset_of("", wrong, "--at")


def test_hole_replaces_what_is_between_its_ends(tmp_path: Path) -> None:
    file = tmp_path / "sum.py"
    file.write_text("def add(a, b):\n    return 0\n", encoding="utf-8")
    hole = Hole.in_file(file, "2:12", "2:13")
    assert (hole.prefix, hole.suffix) == ("def add(a, b):\n    return ", "\n")


def test_line_endings_stay_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "dos.py"
    file.write_bytes(b"a = 1\r\nb = \r\n")
    hole = Hole.in_file(file, "2:5")
    assert (hole.prefix, hole.suffix) == ("a = 1\r\nb = ", "\r\n")
    with pytest.raises(InputError, match="line 2 ends at column 5"):
        Hole.in_file(file, "2:6")


def test_place_below_the_file_names_its_length(tmp_path: Path) -> None:
    file = tmp_path / "short.py"
    file.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="--at 9:1: the file has 2 lines"):
        Hole.in_file(file, "9:1")


def test_end_before_begin_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "short.py"
    file.write_text("x = 1\n", encoding="utf-8")
    with pytest.raises(InputError, match="--to 1:1 is before --at 1:3"):
        Hole.in_file(file, "1:3", "1:1")


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "image.png"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"image\.png is not UTF-8"):
        Hole.in_file(file, "1:1")


def test_model_is_told_no_folder_outside_of_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text("", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Hole.in_file(file, "1:1").path == "src/a.py"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Hole.in_file(file, "1:1").path == "a.py"
