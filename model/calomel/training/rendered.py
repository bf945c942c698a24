"""The data of a run as tokens: what `calomel shards` writes once, small enough to travel to a machine with a GPU.

A shard is one xz stream: a line of JSON with an entry for each text (its path, language, number of tokens and, for a
story, kind and changes), then the ids of all texts one behind the other, as uint16. A run needs nothing but a folder of
shards and the tokenizer beside them.
"""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from calomel.prompts.parts import Edit
from calomel.prompts.tokenizer import Tokenizer
from calomel.storage import write_whole
from calomel.training.config import TrainingConfigError
from calomel.training.corpus.shards import CorpusError, Document, by_language, read_documents, train_tokenizer
from calomel.training.edits.story import Story, read_stories

TEXT, HELD_OUT, EDITS, HELD_OUT_EDITS = "text.xz", "heldout.xz", "edits.xz", "heldout-edits.xz"
TOKENIZER: Final = "tokenizer.json"
_TOKENIZER_CHARACTERS: Final = 40_000_000
_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One text of a shard: what is said of it, and which ids [start, end) it has."""

    language: str
    told: Mapping[str, Any]
    start: int
    end: int


class Shard:
    """The texts of one shard, decoded when they are drawn.

    Raises CorpusError, which names the command that makes it, if there is no such file.
    """

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        if not path.is_file():
            raise CorpusError(f"{path} does not exist; `calomel shards` makes it")
        with lzma.open(path) as packed:
            told = json.loads(packed.readline())
            self._ids: NDArray[np.uint16] = np.frombuffer(packed.read(), dtype="<u2")
        ends = list(accumulate(each["tokens"] for each in told))
        self._tokenizer = tokenizer
        self.entries = [
            Entry(each["language"], each, end - each["tokens"], end) for each, end in zip(told, ends, strict=True)
        ]

    def text(self, entry: Entry) -> str:
        """The text of an entry."""
        return self._tokenizer.decode(self._ids[entry.start : entry.end].tolist())

    def document(self, entry: Entry) -> Document:
        """A source file."""
        return Document(entry.told["path"], entry.language, self.text(entry))

    def story(self, entry: Entry) -> Story:
        """A story."""
        told = entry.told
        changes = tuple(Edit(*each) for each in told["changes"])
        return Story(told["kind"], entry.language, told["path"], self.text(entry), changes)


class DocumentSampler:
    """Draws documents: first a language by its share, then a file by its length."""

    def __init__(self, shard: Shard, shares: Mapping[str, float]) -> None:
        self._shard = shard
        self._files, self._shares = by_language(shard.entries, shares)
        self._lengths = {
            language: list(accumulate(each.end - each.start for each in files))
            for language, files in self._files.items()
        }

    def draw(self, rng: random.Random) -> Document:
        """A document; long ones are drawn more often, as more windows fit into them."""
        language = rng.choices(list(self._files), self._shares)[0]
        found = rng.choices(self._files[language], cum_weights=self._lengths[language])[0]
        return self._shard.document(found)


def tokenizer_of(data: Path) -> Tokenizer:
    """The tokenizer beside the shards of a folder; raises TrainingConfigError if there is none."""
    if not (data / TOKENIZER).is_file():
        raise TrainingConfigError(f"{data / TOKENIZER} does not exist; `calomel shards` makes it")
    return Tokenizer.from_file(data / TOKENIZER)


def render(
    corpus: Path,
    edits: Path | None,
    out: Path,
    *,
    tokenizer: Path | None = None,
    vocab_size: int = 8192,
    tokens: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> None:
    """Write the shards of a corpus and of stories to `out`.

    Args:
        corpus: output folder of `calomel corpus`.
        edits: output folder of `calomel edits`; None for no stories.
        out: where shards and tokenizer go.
        tokenizer: to use; None to train one on the corpus.
        vocab_size: how many tokens it then has.
        tokens: at most so many of training text, the first of the corpus, which is shuffled; 0 for all.
        report: gets a line for each shard.

    Raises:
        CorpusError: the corpus or the stories are not there.
    """
    out.mkdir(parents=True, exist_ok=True)
    if tokenizer is None:
        used = train_tokenizer(_first(corpus / "train.jsonl.zst"), out / TOKENIZER, vocab_size=vocab_size)
    else:
        write_whole(out / TOKENIZER, tokenizer.read_bytes())
        used = Tokenizer.from_file(out / TOKENIZER)
    for name, target, most in (("train", TEXT, tokens), ("heldout", HELD_OUT, 0)):
        report(_write(out / target, map(asdict, read_documents(corpus / f"{name}.jsonl.zst")), used, most))
    if edits is not None:
        for name, target in (("train-edits", EDITS), ("heldout-edits", HELD_OUT_EDITS)):
            report(_write(out / target, map(_told, read_stories(edits / f"{name}.jsonl.zst")), used, 0))


def _told(story: Story) -> dict[str, Any]:
    return {name: getattr(story, name) for name in ("kind", "path", "language", "changes", "text")}


def _write(path: Path, told: Iterable[dict[str, Any]], tokenizer: Tokenizer, most: int) -> str:
    """Write a shard, which appears whole or not at all; says how large it is."""
    entries, parts, total = [], list[NDArray[np.uint16]](), 0
    for each in told:
        ids = np.asarray(tokenizer.encode(each.pop("text")), dtype="<u2")
        if most and total + len(ids) > most:
            break
        total += len(ids)
        entries.append({**each, "tokens": len(ids)})
        parts.append(ids)
    head = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    packed = lzma.compress(head + b"".join(part.tobytes() for part in parts), preset=6)
    write_whole(path, packed)
    return f"{path.name}: {len(entries):,} texts, {total:,} tokens, {len(packed):,} bytes"


def _first(path: Path) -> Iterator[str]:
    """The first texts of a corpus, as many as a tokenizer is trained on."""
    characters = 0
    for document in read_documents(path):
        yield document.text
        characters += len(document.text)
        if characters > _TOKENIZER_CHARACTERS:
            return
