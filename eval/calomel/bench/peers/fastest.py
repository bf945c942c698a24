"""Opens the peers that are there, each with the number type and the threads that make it fastest."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from calomel.bench.peers.gguf_file import NumberType, write_gguf
from calomel.bench.peers.in_llamacpp import LlamaCppPeer
from calomel.bench.peers.in_transformers import TransformersPeer
from calomel.bench.peers.peer import Peer, PeerUnavailableError

Maker = Callable[[], Peer]
Trial = Callable[[Peer], float]
"""Milliseconds that an answer takes."""

NUMBER_TYPES: Final[tuple[NumberType, ...]] = ("f32", "f16", "bf16")
DTYPES: Final = ("float32", "bfloat16")
# Of positions, beyond the prompt.
_ROOM: Final = 512


@contextmanager
def open_peers(
    folder: Path, context: int, threads: Sequence[int], trial: Trial, say: Callable[[str], None]
) -> Iterator[tuple[list[Peer], list[str]]]:
    """The peers that are there, over the checkpoint in `folder`, and why others are not; closed at the end."""
    peers: list[Peer] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="calomel-peers-") as place:
        offers: tuple[Callable[[], list[Maker]], ...] = (
            lambda: _transformers(folder, threads),
            lambda: _llamacpp(folder, Path(place), context + _ROOM, threads),
        )
        try:
            for offer in offers:
                try:
                    peers.append(fastest(offer(), trial, say))
                except PeerUnavailableError as error:
                    missing.append(str(error))
            yield peers, missing
        finally:
            for peer in peers:
                peer.close()


def fastest(makers: Sequence[Maker], trial: Trial, say: Callable[[str], None]) -> Peer:
    """What the maker makes whose peer took least time; the others are closed."""
    took: list[float] = []
    for make in makers:
        peer = make()
        took.append(trial(peer))
        say(f"{peer.name}: {peer.settings}: {took[-1]:.0f} ms an answer")
        peer.close()
        gc.collect()
    return makers[min(range(len(makers)), key=took.__getitem__)]()


def _transformers(folder: Path, threads: Sequence[int]) -> list[Maker]:
    def maker(dtype: str, count: int) -> Maker:
        return lambda: TransformersPeer(folder, dtype=dtype, threads=count)

    return [maker(dtype, count) for dtype in DTYPES for count in threads]


def _llamacpp(folder: Path, place: Path, positions: int, threads: Sequence[int]) -> list[Maker]:
    from calomel.engine import load_checkpoint

    model = load_checkpoint(folder)
    makers: list[Maker] = []
    for kind in NUMBER_TYPES:
        file = place / f"{kind}.gguf"
        write_gguf(model, file, kind)
        makers += [_llama(file, positions, count, kind) for count in threads]
    return makers


def _llama(file: Path, positions: int, threads: int, kind: str) -> Maker:
    return lambda: LlamaCppPeer(file, positions=positions, threads=threads, settings=kind)
