"""Counting what mostly follows the last tokens of a corpus, from its files to the table beside a checkpoint."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from calomel.engine import NgramTable
from calomel.prompts.tokenizer import Tokenizer
from calomel.training.corpus.shards import CorpusError, SourceFile, write_shard
from calomel.training.ngrams import NgramConfig, build_ngrams
from calomel.weights import nano_path

CUSTOM = "    for index, value in enumerate(values):\n        total += value * index\n"
OWN = "        self.zeppelin.hover(altitude)\n"


def packages(*, left_out: bool) -> list[str]:
    """Names of packages, of which every fortieth or so is left out of the counts."""
    names = [f"package{number}" for number in range(400)]
    return [name for name in names if (zlib.crc32(f"pypi/{name}".encode()) % 40 == 0) == left_out]


def file(package: str, text: str) -> SourceFile:
    return SourceFile(package, "pypi", f"{package}/module.py", "python", "MIT", text)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(nano_path() / "tokenizer.json")


def test_a_table_has_what_many_packages_say_and_not_what_one_repeats(tmp_path: Path, tokenizer: Tokenizer) -> None:
    counted = packages(left_out=False)[:12]
    texts = [file(name, f"def weigh_{name}(values):\n{CUSTOM * 6}") for name in counted]
    texts.append(file(counted[0], f"class Airship:\n    def hover(self, altitude):\n{OWN * 40}"))
    texts += [file(name, f"def left_{name}(values):\n{CUSTOM * 12}") for name in packages(left_out=True)[:3]]
    write_shard(tmp_path / "train.jsonl.zst", texts)
    said: list[str] = []

    build_ngrams(NgramConfig(tmp_path, nano_path(), tmp_path / "out", contexts=10_000, holes=6), said.append)

    table = NgramTable.load(tmp_path / "out", tokenizer.vocab_size)
    assert table is not None
    known = tokenizer.encode("    for index, value in enumerate(")
    found = table.following(known, len(known))
    assert found is not None
    assert (tokenizer.decode([found.token]), found.order, found.share) == ("values", 5, 1.0)
    # Each of the packages counts three times, whatever it repeats.
    assert found.count == pytest.approx(36, rel=0.05)
    repeated = tokenizer.encode("        self.zeppelin")
    assert table.following(repeated, len(repeated)) is None
    alone, beside = (float(word) for word in said[-2].split() if word.count(".") == 1 and word[0].isdigit())
    assert beside < alone


def test_the_contexts_with_the_most_places_are_kept(tmp_path: Path, tokenizer: Tokenizer) -> None:
    names = packages(left_out=False)[:20]
    texts = [file(name, CUSTOM * 3 + ("    return sorted(values)\n" if name in names[:4] else "")) for name in names]
    texts += [file(name, CUSTOM * 12) for name in packages(left_out=True)[:2]]
    write_shard(tmp_path / "train.jsonl.zst", texts)

    build_ngrams(NgramConfig(tmp_path, nano_path(), tmp_path, contexts=20, holes=4), lambda _: None)

    table = NgramTable.load(tmp_path, tokenizer.vocab_size)
    assert table is not None
    common, rare = (tokenizer.encode(text) for text in ("        total += value", "    return sorted"))
    assert table.following(common, len(common)) is not None
    assert table.following(rare, len(rare)) is None


def test_a_corpus_of_which_nothing_can_be_left_out_is_refused(tmp_path: Path) -> None:
    write_shard(tmp_path / "train.jsonl.zst", [file(packages(left_out=False)[0], CUSTOM)])
    with pytest.raises(CorpusError, match="too few packages"):
        build_ngrams(NgramConfig(tmp_path, nano_path(), tmp_path), lambda _: None)
