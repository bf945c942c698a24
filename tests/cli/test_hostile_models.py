"""Folders of models that are wrong on purpose: each command says so, soon, and fills no memory."""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cli.conftest import Runner

from calomel.cli.checks import check_folder
from calomel.weights import nano_path

Place = Callable[[Path], None]


def sparse(path: Path) -> None:
    path.unlink(missing_ok=True)
    with path.open("wb") as file:
        file.truncate(2**30)


def pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()


def loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


def holding(data: bytes) -> Place:
    def write(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.write_bytes(data)

    return write


FILES = ("config.json", "tokenizer.json", "model.safetensors", "recall.json", "calibrator.json",
         "model.safetensors.index.json")  # fmt: skip
KINDS: dict[str, Place] = {
    "empty": holding(b""), "zeros": holding(b"\0" * 99), "deep": holding(b'{"a":' * 100_000), "list": holding(b"[1]"),
    "other": holding('{"é": 1e999}'.encode("utf-16")), "huge": sparse, "pipe": pipe, "folder": folder, "loop": loop,
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    place = tmp_path / "model"
    place.mkdir()
    for name in ("config.json", "tokenizer.json", "recall.json", "calibrator.json"):
        shutil.copy(nano_path() / name, place / name)
    (place / "model.safetensors").symlink_to(nano_path() / "model.safetensors")
    return place


def refused(run: Runner, model: Path, file: Path) -> str:
    """What is said when it is opened; the doctor finds the same, in time."""
    file.write_text("x = \n")
    began, before = time.monotonic(), psutil.Process().memory_info().rss
    found = check_folder(model)
    done = run("fill", file, "--at", "1:5", "--model", model)
    run("models", "info", model)
    assert time.monotonic() - began < 20
    assert psutil.Process().memory_info().rss - before < 512 * 1024 * 1024
    assert found.level == "fail"
    assert done.status == 2
    assert done.err.startswith("error: ")
    return done.err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_something_else_in_the_place_of_a_file_is_refused(
    run: Runner, model: Path, tmp_path: Path, name: str, kind: str
) -> None:
    KINDS[kind](model / name)
    if name == "calibrator.json":  # without it, a model fills gaps
        assert check_folder(model).level == "fail"
    else:
        refused(run, model, tmp_path / "a.py")


T: dict[str, Any] = {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}
HEADERS: dict[str, tuple[bytes | dict[str, Any], int | None]] = {
    "length 2^63": (b"{}", 2**63),
    "length 2^64 - 1": (b"{}", 2**64 - 1),
    "overlapping": ({"a": T, "b": {**T, "data_offsets": [8, 24]}}, None),
    "negative": ({"a": {**T, "shape": [-4], "data_offsets": [-16, 0]}}, None),
    "backwards": ({"a": {**T, "data_offsets": [16, 0]}}, None),
    "a type that is not": ({"a": {**T, "dtype": "Q9"}}, None),
    "a shape that is too large": ({"a": {**T, "shape": [2**32, 2**32, 2**32]}}, None),
    "a name twice": (b'{"a": %b, "a": %b}' % ((json.dumps(T).encode(),) * 2), None),
    "no JSON": (b"\xff\xfe{", None),
    "a hundred megabytes": (b'{"__metadata__":{"x":"' + b"y" * 100_000_000 + b'"}}', None),
}


@pytest.mark.parametrize(("header", "length"), HEADERS.values(), ids=list(HEADERS))
def test_a_header_of_weights_that_cannot_be_true_is_refused(
    run: Runner, model: Path, tmp_path: Path, header: bytes | dict[str, Any], length: int | None
) -> None:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(raw) if length is None else length
    holding(struct.pack("<Q", size) + raw + b"\0" * 64)(model / "model.safetensors")
    assert "is damaged or cut short" in refused(run, model, tmp_path / "a.py")


CONFIG: list[tuple[str, Any]] = [
    ("num_hidden_layers", 10**9), ("num_hidden_layers", -1), ("hidden_size", -256), ("hidden_size", 256.5),
    ("hidden_size", "256"), ("num_attention_heads", 0), ("num_key_value_heads", 0), ("rope_theta", float("nan")),
    ("rms_norm_eps", float("inf")), ("sliding_window", -1), ("layer_types", ["full_attention"] * 100_000),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), CONFIG, ids=lambda each: str(each)[:20])
def test_a_size_that_cannot_be_is_refused(run: Runner, model: Path, tmp_path: Path, name: str, value: object) -> None:
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, name: value}))
    refused(run, model, tmp_path / "a.py")


TOKENIZERS: dict[str, Callable[[dict[str, Any]], object]] = {
    "a pattern that does not compile": lambda said: said.update(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}
    ),
    "an id that is too large": lambda said: said["model"]["vocab"].update(zz=2**33),
    "an id below zero": lambda said: said["model"]["vocab"].update(zz=-1),
    "a merge of unknown pieces": lambda said: said["model"]["merges"].append(["qqq", "zzz"]),
    "merges by the million": lambda said: said["model"]["merges"].extend([["a", "b"]] * 2_000_000),
}


@pytest.mark.parametrize("change", TOKENIZERS.values(), ids=list(TOKENIZERS))
def test_a_tokenizer_that_cannot_be_is_refused(
    run: Runner, model: Path, tmp_path: Path, change: Callable[[dict[str, Any]], object]
) -> None:
    said = json.loads((model / "tokenizer.json").read_text())
    change(said)
    (model / "tokenizer.json").write_text(json.dumps(said))
    assert "tokenizer.json" in refused(run, model, tmp_path / "a.py")


def field(name: str, kind: int, value: bytes) -> bytes:
    return struct.pack("<Q", len(name)) + name.encode() + struct.pack("<I", kind) + value


def gguf(*fields: bytes, tensors: bytes = b"", counted: tuple[int, int] | None = None) -> bytes:
    many = counted or (1 if tensors else 0, len(fields))
    return struct.pack("<4sIQQ", b"GGUF", 3, *many) + b"".join(fields) + tensors + b"\0" * 4096


def tensor(*sizes: int, offset: int = 0, dimensions: int | None = None) -> bytes:
    count = len(sizes) if dimensions is None else dimensions
    return struct.pack(f"<Q1sI{len(sizes)}QIQ", 1, b"t", count, *sizes, 0, offset)


GGUFS = {
    "fields": gguf(counted=(0, 2**60)),
    "tensors": gguf(counted=(2**60, 0)),
    "a string": gguf(field("a", 8, struct.pack("<Q", 2**60))),
    "a list": gguf(field("a", 9, struct.pack("<IQ", 8, 2**60))),
    "a list of numbers": gguf(field("a", 9, struct.pack("<IQ", 10, 3_000_000))),
    "a list of lists": gguf(field("a", 9, struct.pack("<IQ", 9, 1) * 100)),
    "no such type": gguf(field("a", 99, b"")),
    "alignment 0": gguf(field("general.alignment", 4, struct.pack("<I", 0))),
    "alignment 3": gguf(field("general.alignment", 4, struct.pack("<I", 3))),
    "sizes": gguf(tensors=tensor(2**40, 2**40)),
    "dimensions": gguf(tensors=tensor(1, dimensions=2**31)),
    "an offset": gguf(tensors=tensor(4, offset=2**60)),
    "another version": b"GGUF\4" + gguf()[5:],
    "its start alone": b"GGUF\3",
}


@pytest.mark.parametrize("data", [*GGUFS.values(), None], ids=[*GGUFS, "zeros by the gigabyte"])
def test_a_gguf_header_that_cannot_be_true_is_refused(run: Runner, home: Path, data: bytes | None) -> None:
    pytest.importorskip("gguf", reason="pip install gguf")
    file, source = home / "m.gguf", home / "a.py"
    source.write_text("x = \n")
    if data is None:
        sparse(file)
        with file.open("r+b") as opened:
            opened.write(gguf(field("a", 9, struct.pack("<IQ", 8, 2**40))))
    else:
        file.write_bytes(data)
    began, before = time.monotonic(), psutil.Process().memory_info().rss
    done = run("fill", source, "--at", "1:5", "--model", file)
    assert done.status == 2
    assert f"{file} is damaged, or cut short: " in done.err
    assert time.monotonic() - began < 20
    assert psutil.Process().memory_info().rss - before < 512 * 1024 * 1024
