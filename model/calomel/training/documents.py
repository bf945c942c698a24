"""The training text: files of the corpus, drawn by language and then by length; and the tokenizer trained on it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts.tokenizer import PRE_TOKEN, SPECIAL_TOKENS, Tokenizer
from calomel.storage import write_whole
from calomel.training.corpus.shards import CorpusError, read_lines


@dataclass(frozen=True, slots=True)
class Document:
    """One source file."""

    path: str
    language: str
    text: str


def read_documents(path: Path) -> Iterator[Document]:
    """The files of a `.jsonl.zst` made by `calomel corpus`, in its order; see `read_lines`."""
    for entry in read_lines(path, "calomel corpus"):
        yield Document(entry["path"], entry["language"], entry["text"])


class DocumentSampler:
    """Draws documents: first a language by its share, then a file by its length."""

    def __init__(self, documents: Iterator[Document], shares: Mapping[str, float]) -> None:
        self._files: dict[str, list[Document]] = {}
        for document in documents:
            self._files.setdefault(document.language, []).append(document)
        if not self._files:
            raise CorpusError("the corpus has no file")
        self._languages = sorted(self._files)
        self._shares = [shares.get(language, 0.0 if shares else 1.0) for language in self._languages]
        if not any(self._shares):
            raise CorpusError(f"the corpus has only {self._languages}, the configured shares only {sorted(shares)}")
        self._lengths = {
            language: list(accumulate(len(document.text) for document in files))
            for language, files in self._files.items()
        }

    @property
    def characters(self) -> int:
        """Characters of all files together."""
        return sum(lengths[-1] for lengths in self._lengths.values())

    def draw(self, rng: random.Random) -> Document:
        """A document; a long one is drawn more often, as more windows fit into it."""
        language = rng.choices(self._languages, self._shares)[0]
        lengths = self._lengths[language]
        return rng.choices(self._files[language], cum_weights=lengths)[0]


def train_tokenizer(texts: Iterable[str], path: Path, *, vocab_size: int) -> Tokenizer:
    """Train on `texts`, write `tokenizer.json` to `path`, and return it. Specials have the lowest ids."""
    fast = FastTokenizer(models.BPE())
    fast.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKEN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    fast.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=3,
        max_token_length=24,
        show_progress=False,
    )
    fast.train_from_iterator(texts, trainer)
    contents = json.loads(fast.to_str())
    # An "added token" is recognised inside text; these must not be (see calomel.prompts.tokenizer).
    contents["added_tokens"] = []
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(contents, ensure_ascii=False))
    return Tokenizer.from_file(path)
