"""Corpora and stories on disk, a JSON object per line, compressed: written, counted and drawn; and the tokenizer."""

from __future__ import annotations

import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar, cast

from tokenizers import Regex, decoders, models, pre_tokenizers, trainers
from tokenizers import Tokenizer as FastTokenizer

from calomel.prompts.tokenizer import PRE_TOKEN, SPECIAL_TOKENS, Tokenizer
from calomel.storage import write_whole
from calomel.weights import nano_path


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
        raise CorpusError(f"no files in any of the configured languages: {', '.join(sorted(shares)) or 'all'}")
    return found, [shares.get(language, 1.0) for language in found]


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


# High enough for small files, low enough to take seconds for the whole corpus.
COMPRESSION_LEVEL = 10
# Files that are tokenized at once.
_BATCH = 256


class CorpusError(ValueError):
    """A corpus or its stories cannot be built as asked, or do not exist; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus; `path` is relative to its package's archive, or its repository.

    `package` is a package's name or a repository's `OWNER/NAME`, `ecosystem` a registry or `git`.
    """

    package: str
    ecosystem: str
    path: str
    language: str
    license: str
    text: str


def write_shard(path: Path, files: Iterable[SourceFile]) -> None:
    """Write files in the given order; the shard appears whole or not at all."""
    write_lines(path, map(asdict, files))


def read_shard(path: Path) -> Iterator[SourceFile]:
    """Yield a shard's files in order, without holding it in memory."""
    for entry in read_lines(path, "calomel corpus"):
        yield SourceFile(**entry)


def write_lines(path: Path, entries: Iterable[Mapping[str, Any]]) -> None:
    """Write objects as compressed JSON lines; the file appears whole or not at all."""
    import zstandard  # a machine that only trains has none

    packed = io.BytesIO()
    with zstandard.ZstdCompressor(COMPRESSION_LEVEL).stream_writer(packed, closefd=False) as stream:
        for entry in entries:
            stream.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
    write_whole(path, packed.getvalue())


def read_lines(path: Path, maker: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a `.jsonl.zst` in order, without holding it in memory.

    Raises CorpusError, which names the command `maker`, if there is no such file.
    """
    import zstandard

    if not path.is_file():
        raise CorpusError(f"{path} does not exist; `{maker}` makes it")
    with path.open("rb") as raw:
        unpacked = cast("IO[bytes]", zstandard.ZstdDecompressor().stream_reader(raw))
        for line in io.TextIOWrapper(unpacked, encoding="utf-8", newline="\n"):
            yield json.loads(line)


@dataclass
class Summary:
    """A whole build.

    Attributes:
        seed: of the build.
        train, heldout: counts of what they contain.
        dropped: files and stories by reason.
        refused, failed: sources that could not be used, with the reason.
        decontaminated: whether there was measuring data to leave out.
        warnings: to be shown prominently.
    """

    seed: int
    train: Mapping[str, Any] = field(default_factory=dict)
    heldout: Mapping[str, Any] = field(default_factory=dict)
    dropped: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    decontaminated: bool = True
    warnings: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write the summary as indented JSON."""
        said = {**vars(self), "dropped": {reason: count for reason, count in self.dropped.items() if count}}
        write_whole(path, json.dumps(said, indent=1, sort_keys=True) + "\n")


def summarise(files: Iterable[SourceFile]) -> dict[str, Any]:
    """Count one split: files, bytes and tokens of the shipped tokenizer in `total`, `by_language` and `by_source`."""
    tokenizer = FastTokenizer.from_file(str(nano_path() / "tokenizer.json"))
    total = Counter(files=0, bytes=0, tokens=0)
    languages: defaultdict[str, Counter[str]] = defaultdict(Counter)
    sources: defaultdict[str, Counter[str]] = defaultdict(Counter)
    rest = iter(files)
    while batch := tuple(islice(rest, _BATCH)):
        encoded = tokenizer.encode_batch_fast([file.text for file in batch], add_special_tokens=False)
        for file, tokens in zip(batch, encoded, strict=True):
            for counts in (total, languages[file.language], sources[f"{file.ecosystem}/{file.package}"]):
                counts.update(files=1, bytes=len(file.text.encode()), tokens=len(tokens))
    return {"total": total, "by_language": dict(sorted(languages.items())), "by_source": dict(sorted(sources.items()))}


def summary_lines(summary: Summary) -> Iterator[str]:
    """Yield a corpus's summary for a terminal: by source, the largest first, by language, and what was dropped."""
    yield f"{'files':>9} {'bytes':>13} {'tokens':>13}"
    by_bytes = sorted(summary.train["by_source"].items(), key=lambda item: -item[1]["bytes"])
    rows = [*by_bytes, *summary.train["by_language"].items(), ("training", summary.train["total"])]
    for name, counts in (*rows, ("held out", summary.heldout["total"])):
        yield f"{counts['files']:>9,} {counts['bytes']:>13,} {counts['tokens']:>13,}  {name}"
    for reason, count in summary.dropped.most_common():
        yield f"{count:>9,} files dropped: {reason}"
    yield f"{len(summary.refused)} sources refused, {len(summary.failed)} failed"
