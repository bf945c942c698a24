"""Stories on disk: one JSON object a line, zstandard-compressed, each cropped around its changes."""

import io
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

from calomel.training.documents import CorpusError, unpacked
from calomel.training.edits.story import Change, Story

# Characters of a story's text: some times the context that a small model sees around its region.
CROP_CHARACTERS = 12_000


def crop(story: Story, rng: random.Random, characters: int = CROP_CHARACTERS) -> Story | None:
    """Cut a story's text to whole lines around its changes, at most `characters` before the first change.

    Where in the crop the changes lie is drawn. None when the changes lie further apart than that.
    """
    first, last = _touched(story)
    text = story.text
    first = text.rfind("\n", 0, first) + 1
    if last == first or text[last - 1] != "\n":
        last = (text.find("\n", last) + 1) or len(text)
    room = characters - (last - first)
    if room < 0:
        return None
    before = min(first, max(round(room * rng.random()), room - (len(text) - last)))
    start = 0 if before == first else text.find("\n", first - before - 1) + 1
    end = min(len(text), last + room - (first - start))
    end = len(text) if end == len(text) else max(last, text.rfind("\n", 0, end) + 1)
    changes = tuple(Change(c.start - start, c.end - start, c.text) for c in story.changes)
    return Story(story.kind, story.language, story.path, text[start:end], changes)


def _touched(story: Story) -> tuple[int, int]:
    """Return the range of the first text outside of which no change of the story does anything."""
    length = len(story.text)
    before = after = length
    for change in story.changes:
        before = min(before, change.start)
        after = min(after, length - change.end)
        length += len(change.text) - (change.end - change.start)
    return before, max(before, len(story.text) - after)


def write_stories(path: Path, stories: Iterable[Story], level: int | None = None) -> None:
    """Write stories in the given order; the file appears whole or not at all."""
    import zstandard  # reading does not need it where stories are packed as `.xz`

    from calomel.training.corpus.shards import COMPRESSION_LEVEL

    compressor = zstandard.ZstdCompressor(COMPRESSION_LEVEL if level is None else level)
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as raw, compressor.stream_writer(raw) as stream:
        for story in stories:
            stream.write(_line(story).encode())
    partial.replace(path)


def read_stories(path: Path) -> Iterator[Story]:
    """Yield a file's stories in order, without holding them in memory.

    The same packed as `.jsonl.xz` is read too, as documents are.

    Raises:
        CorpusError: there is no such file.
    """
    if not path.is_file():
        raise CorpusError(f"{path} does not exist; `calomel edits` makes it")
    with unpacked(path) as stream:
        for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"):
            fields = json.loads(line)
            changes = tuple(Change(start, end, text) for start, end, text in fields["changes"])
            yield Story(fields["kind"], fields["language"], fields["path"], fields["text"], changes)


def _line(story: Story) -> str:
    fields = {
        "kind": story.kind,
        "language": story.language,
        "path": story.path,
        "text": story.text,
        "changes": [[change.start, change.end, change.text] for change in story.changes],
    }
    return json.dumps(fields, ensure_ascii=False) + "\n"
