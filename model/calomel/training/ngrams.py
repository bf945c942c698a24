"""Counts what follows the last tokens in a corpus, and weighs it against a network: see `calomel.engine.ngrams`.

A package counts a context's token three times at most: what one project repeats is no custom. Some packages are left
out; to what stands in their holes the gate is fitted.
"""

from __future__ import annotations

import json
import random
import zlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import torch
from safetensors.numpy import save
from scipy.optimize import minimize
from tokenizers import Tokenizer as FastTokenizer

from calomel.engine import NgramTable, Transformer
from calomel.engine.attention import Piece, forward
from calomel.engine.memory import TextOrder
from calomel.engine.ngrams import GATE_WEIGHTS, KEPT_SHIFT, LONGEST, NGRAMS_FILE, extended, features
from calomel.families.loading import load_checkpoint
from calomel.prompts.own import ContextRenderer
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import Tokenizer
from calomel.storage import write_whole
from calomel.training.config import HoleMix
from calomel.training.corpus.shards import CorpusError, SourceFile, read_shard
from calomel.training.examples import cut

Keys: TypeAlias = np.ndarray
"""[N] uint64: 48 bits of a context's key, and 16 of the token behind it."""

# One package in so many is left out of the counts.
_LEFT_OUT: Final = 40
_BY_PACKAGE: Final = 3
# A context's best token, in so many places at least and in such a share of them: the others say too little.
_LEAST_COUNT: Final = 6
_LEAST_SHARE: Final = 0.25
_TOKEN_BITS: Final = np.uint64(16)
_TOKEN: Final = np.uint64(0xFFFF)
_BATCH: Final = 256
# Of a key, what chooses the piece of all keys that it is sorted in, one after another.
_PIECE_BITS: Final = 4
_CONTEXT: Final = 512
# Rows of a prefix that a hole is fitted to, beside its answer.
_PREFIX_ROWS: Final = 48
_SHORTEST: Final = 400


@dataclass(frozen=True, slots=True)
class NgramConfig:
    """What is counted, and how much of it is kept.

    Attributes:
        corpus: folder that `calomel corpus` has written.
        model: the checkpoint whose tokens are counted, and beside which the table is weighed.
        out: folder to write the table into.
        contexts: so many are kept at most, those with the most places.
        holes: so many are cut to fit the gate.
    """

    corpus: Path
    model: Path
    out: Path
    contexts: int = 2_200_000
    holes: int = 800
    seed: int = 0


def build_ngrams(config: NgramConfig, report: Callable[[str], None]) -> None:
    """Write `ngrams.table` into `config.out`.

    Raises:
        CorpusError: the corpus is not there, or too small to leave packages out.
        CheckpointError: the model cannot be read.
    """
    tokenizer = Tokenizer.from_file(config.model / "tokenizer.json")
    fast = FastTokenizer.from_file(str(config.model / "tokenizer.json"))
    packages, left_out = _tokens(config.corpus / "train.jsonl.zst", fast, report)
    if not packages or not left_out:
        raise CorpusError(f"{config.corpus} has too few packages to count some and to leave out others")
    kept: list[dict[str, np.ndarray]] = []
    for order in range(1, LONGEST + 1):
        kept.append(_best(_counted(packages, order)))
        report(f"{len(kept[-1]['contexts']):>11,} contexts of {order}")
    orders = _most_places(kept, config.contexts)
    read_as = TextOrder((tokenizer.region, tokenizer.near), tokenizer.middle)
    table = NgramTable(orders, [0.0] * GATE_WEIGHTS, read_as)
    gate, before, behind = _fit(table, load_checkpoint(config.model), tokenizer, left_out, config)
    report(f"nats a token in holes of {len(left_out)} files left out: {before:.3f} alone, {behind:.3f} with the table")
    tensors = {
        f"{part}.{order}": values for order, arrays in enumerate(orders, 1) for part, values in arrays.items()
    }
    said = {"gate": json.dumps(gate), "pauses": json.dumps(read_as.pauses), "resumes": str(read_as.resumes)}
    config.out.mkdir(parents=True, exist_ok=True)
    write_whole(config.out / NGRAMS_FILE, save(tensors, said))
    report(f"{sum(each.nbytes for each in tensors.values()):>11,} bytes in {config.out / NGRAMS_FILE}")


def _tokens(
    shard: Path, tokenizer: FastTokenizer, report: Callable[[str], None]
) -> tuple[list[np.ndarray], list[SourceFile]]:
    """The tokens of each package [N] uint16, 0 behind each file; and the files of those left out."""
    packages: dict[str, list[np.ndarray]] = defaultdict(list)
    left_out: list[SourceFile] = []
    files = read_shard(shard)
    while batch := list(islice(files, _BATCH)):
        for file, encoding in zip(batch, tokenizer.encode_batch_fast([file.text for file in batch]), strict=True):
            name = f"{file.ecosystem}/{file.package}"
            if zlib.crc32(name.encode()) % _LEFT_OUT:
                packages[name].append(np.array([*encoding.ids, 0], dtype=np.uint16))
            elif len(file.text) > _SHORTEST:
                left_out.append(file)
    whole = [np.concatenate(parts) for parts in packages.values()]
    report(f"{sum(map(len, whole)):>11,} tokens of {len(whole)} packages")
    return whole, left_out


def _counted(packages: list[np.ndarray], order: int) -> list[Keys]:
    """The contexts of `order` tokens with what follows them, in rising order: each as often as it counts, by package."""
    parts = []
    for tokens in packages:
        size = len(tokens) - order
        if size <= 0:
            continue
        keys, whole = np.zeros(size, dtype=np.uint64), tokens[order:] != 0
        for back in range(1, order + 1):  # the nearest token first
            here = tokens[order - back : order - back + size]
            keys = extended(keys, here.astype(np.uint64))
            whole = whole & (here != 0)
        found = (keys[whole] & ~_TOKEN) | tokens[order:][whole].astype(np.uint64)
        found.sort()
        distinct, counts = _runs(found)
        parts += [distinct[counts > seen] for seen in range(_BY_PACKAGE)]
    return parts


def _runs(values: Keys) -> tuple[Keys, np.ndarray]:
    """The distinct ones of sorted `values`, and how often each is there."""
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1]])[: len(values)])
    return values[starts], np.diff(np.append(starts, len(values)))


def _best(parts: list[Keys]) -> dict[str, np.ndarray]:
    """Of each context that says enough: `contexts` as a table keeps them, `tokens`, `shares` and `places`."""
    # Piece by piece: all at once would be there three times.
    bounds = np.arange(1, 1 << _PIECE_BITS, dtype=np.uint64) << np.uint64(64 - _PIECE_BITS)
    cuts = [[0, *part.searchsorted(bounds).tolist(), len(part)] for part in parts]
    found = []
    for piece in range(1 << _PIECE_BITS):
        keys = np.concatenate([part[at[piece] : at[piece + 1]] for part, at in zip(parts, cuts, strict=True)])
        keys.sort()
        found.append(_best_of(*_runs(keys)))
    whole = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    first = np.unique(whole["contexts"], return_index=True)[1]
    return {name: values[first] for name, values in whole.items()}


def _best_of(keys: Keys, counts: np.ndarray) -> dict[str, np.ndarray]:
    contexts = keys >> _TOKEN_BITS
    starts = np.flatnonzero(np.concatenate([[True], contexts[1:] != contexts[:-1]])[: len(keys)])
    sizes = np.diff(np.append(starts, len(keys)))
    places, most = (reduce(counts, starts) if len(keys) else counts for reduce in (np.add.reduceat, np.maximum.reduceat))
    # Of several that are the most, the first.
    at = np.flatnonzero(counts == np.repeat(most, sizes))
    at = at[np.unique(np.repeat(np.arange(len(starts)), sizes)[at], return_index=True)[1]]
    said = (most >= _LEAST_COUNT) & (most >= _LEAST_SHARE * places)
    at, places, most = at[said], places[said], most[said]
    return {
        "contexts": (keys[at] >> np.uint64(KEPT_SHIFT)).astype(np.uint32),
        "tokens": (keys[at] & _TOKEN).astype(np.uint16),
        "shares": np.rint(255 * most / places).astype(np.uint8),
        "places": places,
    }


def _most_places(orders: list[dict[str, np.ndarray]], room: int) -> list[dict[str, np.ndarray]]:
    """The `room` contexts whose best token is right in the most places, `places` packed as `counts`."""
    right = [arrays["places"] * arrays["shares"] for arrays in orders]
    every = np.concatenate(right)
    least = np.partition(every, len(every) - room)[len(every) - room] if len(every) > room else 0
    kept = []
    for arrays, each in zip(orders, right, strict=True):
        chosen = each >= least
        counts = np.minimum(255, np.rint(8 * np.log2(arrays["places"][chosen]))).astype(np.uint8)
        kept.append({name: arrays[name][chosen] for name in ("contexts", "tokens", "shares")} | {"counts": counts})
    return kept


def _fit(
    table: NgramTable, model: Transformer, tokenizer: Tokenizer, files: list[SourceFile], config: NgramConfig
) -> tuple[list[float], float, float]:
    """The gate's weights, fitted to every other hole, and over the others the nats of a token without and with it."""
    rng = random.Random(config.seed)
    renderer, mix = ContextRenderer(tokenizer), HoleMix(nothing=0.05)
    rows: list[list[float]] = []
    own: list[float] = []
    hits: list[bool] = []
    fitted: list[bool] = []
    with torch.inference_mode():
        for number in range(config.holes):
            file = rng.choice(files)
            hole = cut(file.text, len(file.text) // 8, len(file.text), mix, rng)
            start = tokenizer.boundary(file.text[: hole.start])
            parts = PromptParts(path=file.path, prefix=file.text[:start], suffix=file.text[max(start, hole.end) :])
            context = renderer.render(parts, _CONTEXT).context
            answer = tokenizer.encode(file.text[start : max(start, hole.end)])
            tokens, begin = [*context, *answer, tokenizer.end], len(context)
            ends = [*_prefix_rows(tokens, begin, table.order), *range(begin, len(tokens))]
            logits = forward(model, [Piece(tokens[:-1], None, 0, causal=True, read=[end - 1 for end in ends])])
            for end, said in zip(ends, logits.log_softmax(dim=-1), strict=True):
                found = table.following(tokens, end)
                own.append(float(said[tokens[end]]))
                fitted.append(number % 2 == 0)
                hits.append(found is not None and found.token == tokens[end])
                if found is None:
                    rows.append([0.0] * GATE_WEIGHTS)
                    continue
                best = int(said.argmax())
                rows.append(features(found, float(said[found.token]), float(said[best]), same=best == found.token))
    seen, alone, hit, chosen = np.array(rows), np.exp(np.array(own)), np.array(hits, dtype=float), np.array(fitted)

    def loss(weights: np.ndarray, where: np.ndarray) -> tuple[float, np.ndarray]:
        x, p, right = seen[where], alone[where], hit[where]
        gate = (x[:, 0] > 0) / (1.0 + np.exp(-np.clip(x @ weights, -30, 30)))
        mixed = (1.0 - gate) * p + gate * right + 1e-12
        slope = -(right - p) / mixed * gate * (1.0 - gate)
        return float(-np.log(mixed).mean()), x.T @ slope / len(x)

    start = np.zeros(GATE_WEIGHTS)
    start[0] = -2.0
    weights = minimize(loss, start, args=(chosen,), jac=True, method="L-BFGS-B").x
    return [float(each) for each in weights], float(-np.log(alone[~chosen]).mean()), loss(weights, ~chosen)[0]


def _prefix_rows(tokens: list[int], begin: int, order: TextOrder) -> range:
    """Some rows of text before the hole: those before what stands between it and the mark."""
    pauses = [row for row in range(begin) if tokens[row] in order.pauses or tokens[row] == order.resumes]
    stop = pauses[0] if pauses else begin
    return range(max(LONGEST, stop - _PREFIX_ROWS), stop)


