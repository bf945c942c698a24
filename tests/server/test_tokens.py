from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calomel.server.errors import StartError
from calomel.server.tokens import Tokens, parse, read, read_or_make


def test_a_token_is_made_once_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "token"
    first, made = read_or_make(path)
    again, made_again = read_or_make(path)

    assert (made, made_again) == (True, False)
    assert first == again
    assert len(first.by_name[""]) >= 43
    assert oct(path.stat().st_mode & 0o777) == "0o600"
    assert oct(path.parent.stat().st_mode & 0o777) == "0o700"
    assert list(path.parent.iterdir()) == [path]


def test_servers_that_start_at_the_same_time_make_one_token(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: read_or_make(tmp_path / "token")[0].by_name[""], range(32)))
    assert len(set(found)) == 1


@pytest.mark.parametrize("mode", [0o604, 0o606, 0o620, 0o666])
def test_a_file_that_others_can_open_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    path.chmod(mode)
    with pytest.raises(StartError, match="open to other users"):
        read(path)


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640])
def test_a_file_of_the_users_own_is_read(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("# for the team\n\nann a-token\nbob\tb-token\n")
    path.chmod(mode)
    assert read(path) == Tokens({"ann": "a-token", "bob": "b-token"})


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "a b c\n", "ann x\nann y\n", "ann x\nbob x\n", "../x y\n", "x\x7fy\n", "editors x\n"]
)
def test_a_list_that_cannot_be_used_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(StartError) as caught:
        parse(text, Path("/tokens"))
    assert "ann" not in str(caught.value)


def test_no_plain_file_is_no_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(StartError):
            read(path)


def test_whose_a_token_is() -> None:
    tokens = Tokens({"ann": "a-token", "bob": "b-token"})
    assert [tokens.owner(offered) for offered in (b"a-token", b"b-token", b"", b"a-toke", b"a-token2", b"\xff")] == [
        "ann", "bob", None, None, None, None,
    ]  # fmt: skip
    assert "a-token" not in repr(tokens)
