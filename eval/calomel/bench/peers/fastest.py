"""Opens the peers that are there, each with the number type and the threads that make it fastest."""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from calomel.bench.peers.gguf_file import NumberType, write_gguf
from calomel.bench.peers.in_llamacpp import LlamaCppPeer
from calomel.bench.peers.in_transformers import CacheKind, TransformersPeer
from calomel.bench.peers.peer import Peer, PeerUnavailableError

Maker = Callable[[], Peer]
Trial = Callable[[Peer], float]
"""Milliseconds that an answer takes."""

NUMBER_TYPES: Final[tuple[NumberType, ...]] = ("f32", "f16", "bf16", "q8_0")
QUICK_NUMBER_TYPES: Final[tuple[NumberType, ...]] = ("f16", "q8_0")
# Numbers and caches of transformers.
MANNERS: Final[tuple[tuple[str, CacheKind], ...]] = (
    ("float32", "dynamic"),
    ("float32", "roomy"),
    ("bfloat16", "roomy"),
)
QUICK_MANNERS: Final[tuple[tuple[str, CacheKind], ...]] = (("float32", "roomy"),)
# Of positions, beyond the prompt.
_ROOM: Final = 512


@dataclass(frozen=True, slots=True)
class Offer:
    """What is tried of the peers.

    Attributes:
        folder: the checkpoint.
        context: tokens of prompt.
        threads: numbers of threads.
        quick: only what was fastest elsewhere.
    """

    folder: Path
    context: int
    threads: Sequence[int]
    quick: bool = False


@contextmanager
def open_peers(offer: Offer, trial: Trial, say: Callable[[str], None]) -> Iterator[tuple[list[Peer], list[str]]]:
    """The peers that are there, each as it is fastest, and why others are not; closed at the end."""
    peers: list[Peer] = []
    missing: list[str] = []
    with tempfile.TemporaryDirectory(prefix="calomel-peers-") as place:
        makers: tuple[Callable[[], list[Maker]], ...] = (
            lambda: transformers_makers(offer),
            lambda: llamacpp_makers(offer, Path(place)),
        )
        try:
            for make in makers:
                try:
                    peers.append(fastest(make(), trial, say))
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


def transformers_makers(offer: Offer) -> list[Maker]:
    """A maker for everything that is tried of transformers."""

    def maker(dtype: str, cache: CacheKind, count: int) -> Maker:
        return lambda: TransformersPeer(offer.folder, dtype=dtype, threads=count, cache=cache)

    manners = QUICK_MANNERS if offer.quick else MANNERS
    return [maker(dtype, cache, count) for dtype, cache in manners for count in offer.threads]


def llamacpp_makers(offer: Offer, place: Path) -> list[Maker]:
    """A maker for everything that is tried of llama.cpp; writes a file for each number type into `place`."""
    from calomel.engine import load_checkpoint

    def maker(file: Path, kind: str, count: int) -> Maker:
        return lambda: LlamaCppPeer(file, positions=offer.context + _ROOM, threads=count, settings=kind)

    model = load_checkpoint(offer.folder)
    makers: list[Maker] = []
    for kind in QUICK_NUMBER_TYPES if offer.quick else NUMBER_TYPES:
        file = place / f"{kind}.gguf"
        write_gguf(model, file, kind)
        makers += [maker(file, kind, count) for count in offer.threads]
    return makers
