"""Bits a byte: how well a model predicts code, whatever its tokens are, from its causal log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from calomel.bench.model import OpenModel
from calomel.engine import Request
from calomel.prompts.own import assemble_front
from calomel.prompts.tokenizer import Tokenizer
from calomel.report.heldout import HeldoutFile
from calomel.report.result import Interval, ratio_of_sums

# Bytes of a file's beginning that are read, and of what follows, which is predicted; files of each language.
_READ, _PREDICTED, _FILES = 200, 3_000, 12


def bits_per_byte(model: OpenModel, files: Sequence[HeldoutFile]) -> Interval | None:
    """Bits a byte of `files`, the first dozen of each language that are long enough; None for a model that has none.

    The interval is that of a bootstrap over files.
    """
    config = model.engine.config
    if not config.diffusion.verifiable or config.max_position_embeddings <= _READ + _PREDICTED + 1:
        return None
    long = (file for file in files if len(file.text.encode()) >= _READ + _PREDICTED)
    bits, bytes_ = [], []
    for _, group in groupby(sorted(long, key=lambda file: file.language), key=lambda file: file.language):
        for file in list(group)[:_FILES]:
            nats, size = _predicted(model, file.text)
            bits.append(nats / math.log(2))
            bytes_.append(float(size))
    return ratio_of_sums(bits, bytes_) if bits else None


def _predicted(model: OpenModel, text: str) -> tuple[float, int]:
    """The nats of what is predicted of a text, and its bytes."""
    content = text.encode()
    begin, rest = (part.decode(errors="ignore") for part in (content[:_READ], content[_READ : _READ + _PREDICTED]))
    tokenizer = model.tokenizer
    read, given = tokenizer.encode(begin), tokenizer.encode(rest)
    # The marks that a checkpoint of ours knows; others continue plain text.
    context = assemble_front((), (), read, tokenizer) if isinstance(tokenizer, Tokenizer) else read
    result = model.engine.submit(Request(tuple(context), given=tuple(given))).result()
    return -math.fsum(result.log_probs), len(rest.encode())
