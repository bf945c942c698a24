from __future__ import annotations

from calomel.replay.txtar import split


def test_an_archive_is_a_comment_and_files() -> None:
    archive = "About it.\nkey: value\n-- a.txt --\none\n\n-- folder/b.txt --\n-- no mark\n"
    assert split(archive) == ("About it.\nkey: value\n", {"a.txt": "one\n\n", "folder/b.txt": "-- no mark\n"})


def test_a_text_without_marks_is_all_comment() -> None:
    assert split("one\ntwo") == ("one\ntwo", {})


def test_a_mark_at_the_very_end_begins_an_empty_file() -> None:
    assert split("-- a --") == ("", {"a": ""})


def test_marks_may_end_in_cr_lf() -> None:
    assert split("-- a --\r\none\r\n") == ("", {"a": "one\r\n"})
