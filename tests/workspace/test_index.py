from __future__ import annotations

import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calomel.workspace.index import K1, B, Index, search
from calomel.workspace.index_worker import read_source
from calomel.workspace.indexer import Indexer
from calomel.workspace.segment import Segment, SourceFile, analyse, build_segment, count_numbers, words_in

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "kappa", "sigma", "omega"]


def segment_of(texts: list[str]) -> Segment:
    files = [(SourceFile(f"/w/{n}.txt", f"{n}.txt"), analyse(text, f"/w/{n}.txt")) for n, text in enumerate(texts)]
    return build_segment(files)


def naive(texts: list[str], query: dict[int, int]) -> dict[int, float]:
    documents = [Counter(count_numbers(words_in(text))) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths)
    scores: dict[int, float] = {}
    for term, weight in query.items():
        having = sum(term in document for document in documents)
        if not having:
            continue
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, document in enumerate(documents):
            count = document[term]
            if count:
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[number] / mean))
                scores[number] = scores.get(number, 0.0) + weight * rarity * part
    return scores


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=2, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)
def test_the_best_chunks_are_those_of_the_formula(texts: list[list[str]], asked: list[str]) -> None:
    whole = [" ".join(words) + "\n" for words in texts]
    segment = segment_of(whole)
    query = count_numbers(words_in(" ".join(asked)))
    expected = naive(whole, query)
    found = {int(hit.segment.arrays["chunk_file"][hit.chunk]): hit.score for hit in search([segment], query, 20)}
    assert found.keys() == expected.keys()
    for number, score in expected.items():
        assert math.isclose(found[number], score, rel_tol=1e-3)


SECONDS = 30.0


@contextmanager
def reading(
    root: Path, count: int = 0, index: Index | None = None, command: list[str] | None = None, **options: Any
) -> Iterator[tuple[Index, Indexer, list[str]]]:
    """A folder of so many modules that is being read, and what is said of that."""
    for number in range(count):
        (root / f"m{number}.py").write_text(f"def name{number}():\n    return {number}\n")
    index, messages = Index() if index is None else index, list[str]()
    reader = Indexer(index, None, messages.append, **({} if command is None else {"command": command}))
    reader.start([root], **options)
    try:
        yield index, reader, messages
    finally:
        reader.stop()


def worker_of(reader: Indexer) -> int:
    assert reader._process is not None
    return reader._process.process.pid


def test_every_file_is_read_and_found_by_its_names_and_the_worker_ends_with_the_reader(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    with reading(tmp_path, 60, progress=lambda *told: seen.append(told)) as (index, reader, _):
        assert reader.wait(SECONDS)
        assert reader.ready
        found = index.definitions([f"name{number}" for number in range(60)], (), 10)
        assert {place.file.name for places in found.values() for place, _ in places} == {f"m{n}.py" for n in range(60)}
        assert seen[-1] == (60, 60)
        assert seen == sorted(seen)
        pid = worker_of(reader)
    assert not Path(f"/proc/{pid}").exists()


def test_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    with reading(tmp_path, 10) as (index, reader, messages):
        assert reader.wait(SECONDS)
        os.kill(worker_of(reader), signal.SIGKILL)
        (tmp_path / "new.py").write_text("def after_death():\n    pass\n")
        reader.refresh([tmp_path / "new.py"])
        assert reader.wait(SECONDS)
        assert "after_death" in index.definitions(["after_death"], (), 10)
        (message,) = messages
        assert "restarts" in message


def test_a_file_that_kills_the_worker_is_left_out_and_named(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("POISON = 1\n")
    worker = tmp_path / "worker"
    worker.write_text(
        "import os, sys\n"
        "from calomel.workspace import index_worker\n"
        "read = index_worker.read_source\n"
        "def deadly(path):\n"
        "    if path.endswith('deadly.py'): os._exit(7)\n"
        "    return read(path)\n"
        "index_worker.read_source = deadly\n"
        "index_worker.main()\n"
    )
    with reading(tmp_path, 20, command=[sys.executable, str(worker)]) as (index, reader, messages):
        assert reader.wait(SECONDS)
        assert len(index) == 20
        assert any(message.startswith("deadly.py plays no part") and "7" in message for message in messages)


def test_a_worker_that_cannot_run_is_given_up_and_said(tmp_path: Path) -> None:
    with reading(tmp_path, 3, command=["/nonexistent/program"]) as (_, reader, messages):
        assert reader.wait(SECONDS)
        assert messages


def test_a_workspace_beyond_the_limit_is_read_in_part_and_said(tmp_path: Path) -> None:
    with reading(tmp_path, 12, most_files=5) as (index, reader, messages):
        assert reader.wait(SECONDS)
        assert len(index) == 5
        assert messages[0].startswith("Only the first 5 files")


class Fragile(Index):
    """Breaks at the first file."""

    whole = False

    def add(self, segment: Segment) -> None:
        self.whole, was_whole = True, self.whole
        if not was_whole:
            raise LookupError("a secret of the user's")
        super().add(segment)


def test_a_mistake_while_reading_is_logged_counted_and_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with reading(tmp_path, 3, Fragile()) as (index, reader, messages):
        assert reader.wait(SECONDS)
        assert (len(index), reader.restarts, len(messages)) == (3, 1, 1)
        assert "LookupError at test_index.py" in caplog.text
        assert "secret" not in caplog.text


def test_a_pipe_a_device_and_a_folder_in_place_of_a_source_file_keep_the_index_not_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "zero.py").symlink_to("/dev/zero")
    (tmp_path / "folder.py").mkdir()
    for name in ("pipe.py", "zero.py", "folder.py"):
        assert read_source(str(tmp_path / name)) == (None, "unreadable")
