"""The training text: files of the corpus, drawn by language and then by length; and the tokenizer trained on it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol, TypeVar

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


class _OfLanguage(Protocol):
    @property
    def language(self) -> str: ...


Item = TypeVar("Item", bound=_OfLanguage)


def by_language(items: Iterable[Item], shares: Mapping[str, float]) -> tuple[dict[str, list[Item]], list[float]]:
    """Items by language, and how often each language is drawn, relatively: equally often without any `shares`.

    Raises CorpusError if there is nothing to draw.
    """
    found: dict[str, list[Item]] = {}
    for item in items:
        found.setdefault(item.language, []).append(item)
    found = {language: found[language] for language in sorted(found) if not shares or shares.get(language, 0.0) > 0}
    if not found:
        raise CorpusError(f"there is nothing in any of the configured languages: {', '.join(sorted(shares)) or 'all'}")
    return found, [shares.get(language, 1.0) for language in found]


class DocumentSampler:
    """Draws documents: first a language by its share, then a file by its length."""

    def __init__(self, documents: Iterable[Document], shares: Mapping[str, float]) -> None:
        self._files, self._shares = by_language(documents, shares)
        self._lengths = {
            language: list(accumulate(len(document.text) for document in files))
            for language, files in self._files.items()
        }

    def draw(self, rng: random.Random) -> Document:
        """A document; long ones are drawn more often, as more windows fit into them."""
        language = rng.choices(list(self._files), self._shares)[0]
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
