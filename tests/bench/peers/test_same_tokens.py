"""The peers decode the same weights: their tokens are those of our own left-to-right policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.bench.peers.conftest import END, random_checkpoint

from calomel.bench.peer_engines import LlamaCppPeer, Peer, PeerUnavailableError, TransformersPeer, write_gguf
from calomel.engine import BlockCausal, Engine, Request
from calomel.families.loading import load_checkpoint

MOST = 12


def own(engine: Engine, prompt: tuple[int, ...]) -> list[int]:
    return list(engine.submit(Request(prompt, max_new_tokens=MOST, policy="left_to_right")).result(60).ids)


def check(peer: Peer, engine: Engine, prompts: tuple[tuple[int, ...], ...]) -> None:
    for prompt in (*prompts, prompts[0]):
        assert peer.decode(prompt, MOST, END, lambda _: False) == own(engine, prompt)


def test_transformers_gives_our_left_to_right_tokens(
    checkpoint: Path, engine: Engine, prompts: tuple[tuple[int, ...], ...]
) -> None:
    pytest.importorskip("transformers")
    check(TransformersPeer(checkpoint, dtype="float32", threads=1), engine, prompts)


def test_a_peer_reads_what_is_new_of_a_prompt(checkpoint: Path, prompts: tuple[tuple[int, ...], ...]) -> None:
    pytest.importorskip("transformers")
    peer = TransformersPeer(checkpoint, dtype="float32", threads=1)
    read = []
    for prompt in (prompts[0], prompts[0], prompts[1], prompts[3]):
        peer.decode(prompt, 2, END, lambda _: False)
        read.append(peer.read)
    assert read == [61, 1, 4, 61]


def test_transformers_stops_when_it_is_told(checkpoint: Path, prompts: tuple[tuple[int, ...], ...]) -> None:
    pytest.importorskip("transformers")
    peer = TransformersPeer(checkpoint, dtype="float32", threads=1)
    whole = peer.decode(prompts[0], MOST, END, lambda _: False)
    assert peer.decode(prompts[0], MOST, END, lambda ids: len(ids) == 2) == whole[:2]


def test_llamacpp_gives_our_left_to_right_tokens(tmp_path: Path, prompts: tuple[tuple[int, ...], ...]) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("llama_cpp")
    folder = random_checkpoint(tmp_path / "full", None)
    file = tmp_path / "model.gguf"
    write_gguf(load_checkpoint(folder), file, "f32")
    peer = LlamaCppPeer(file, positions=512, threads=1, settings="f32")
    try:
        with Engine(BlockCausal(load_checkpoint(folder), cache_tokens=2048)) as engine:
            check(peer, engine, prompts)
    finally:
        peer.close()


def test_a_file_that_is_no_model_is_refused_by_name(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(PeerUnavailableError, match=f"can not open {tmp_path.name}"):
        TransformersPeer(tmp_path, dtype="float32", threads=1)
