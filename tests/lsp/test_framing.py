from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calomel.lsp.connection import Broken, Framer


def frame(body: bytes, name: bytes = b"Content-Length") -> bytes:
    return name + b": %d\r\n\r\n" % len(body) + body


def read(*chunks: bytes) -> list[bytes | Broken]:
    framer, found = Framer(), []
    for chunk in chunks:
        framer.feed(chunk)
        while (one := framer.next()) is not None:
            found.append(one)
    return found


@pytest.mark.parametrize(
    "data",
    [
        frame(b"{}"),
        frame(b"{}", b"content-length"),
        frame(b"{}", b"CONTENT-LENGTH"),
        b"Content-Length:2\r\n\r\n{}",
        b"Content-Length : 2 \r\n\r\n{}",
        b"Content-Length: 2\n\n{}",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}",
        b"Content-Length: 2\r\nContent-Type: x\r\nX-Other: y\r\n\r\n{}",
        b"\r\n\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_headers_of_every_form_announce_a_body(data: bytes) -> None:
    assert read(data) == [b"{}"]


@pytest.mark.parametrize(
    "junk",
    [
        b"Content-Length: two\r\n\r\n",
        b"Content-Length: -2\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n",
        b"Content-Type: x\r\n\r\n",
        b"this is no header\r\n",
        b'{"a": 1}\n{"b": 2}\n',
        b"}}}",
        b"\x00\xff\xfe" * 20_000,
    ],
)
def test_after_junk_the_next_message_is_read(junk: bytes) -> None:
    found = read(junk + frame(b"[1]") + frame(b"[2]"))
    assert [one for one in found if isinstance(one, bytes)] == [b"[1]", b"[2]"]
    assert sum(isinstance(one, Broken) for one in found) == 1


def test_a_length_that_is_too_small_costs_one_message() -> None:
    found = read(b'Content-Length: 3\r\n\r\n{"a": 1}' + frame(b"[2]"))
    assert [one for one in found if isinstance(one, bytes)] == [b'{"a', b"[2]"]


def test_a_length_that_is_too_large_costs_one_message() -> None:
    framer = Framer()
    framer.feed(b"Content-Length: 20\r\n\r\n[1]" + frame(b"[2]"))
    body = framer.next()
    assert isinstance(body, bytes)
    framer.unread(body)
    assert framer.next() == b"[2]"


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 17))
def test_messages_survive_any_division_into_chunks(bodies: list[bytes], size: int) -> None:
    data = b"".join(map(frame, bodies))
    assert bodies == read(*(data[at : at + size] for at in range(0, len(data), size)))


@given(st.binary(max_size=400))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    read(data)
