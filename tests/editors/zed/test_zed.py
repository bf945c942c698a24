"""Prompts as Zed builds them, from real files: the door reads them exactly, and Zed reads its answers exactly."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from starlette.testclient import TestClient
from tests.editors.zed.sources import files
from tests.editors.zed.zed import STOP, Asked, Event, applied, ask
from tests.suggest.made_outcome import read

from calomel.prompts.zeta import parse_zeta
from calomel.suggest.outcome_log import outcome_log_path

# Words of the format: Zed does not ask where it sees them, other clients may.
WORDS = ("<|marker_1|>", "<|marker_2|>", "<|user_cursor|>", "<[fim-middle]>", "<[fim-prefix]>", "<[fim-suffix]>",
         "<filename>x.py\n", "<[end▁of▁sentence]>", "<<<<<<< CURRENT\n", "=======\n", ">>>>>>> UPDATED\n",
         "<filename>edit_history\n", "// User accepted prediction:\n", "...\n")  # fmt: skip


def moments(chance: random.Random, each: int = 1, places: int = 4) -> Iterator[Asked]:
    """Cursors in real files, after a few edits there."""
    sources = [(path, text) for path, text in files(2 * each) if not any(word.strip() in text for word in WORDS[:-1])]
    for path, text in sources:
        for _ in range(places):
            cursor = chance.choice((0, len(text), chance.randint(0, len(text)), chance.randint(0, len(text))))
            others = [(name, [_lines(chance, other)]) for name, other in chance.sample(sources, 3) if name != path]
            asked = ask(path, text, cursor, list(_edits(chance, path, text)), others)
            if asked is not None:
                yield asked


def _lines(chance: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    first = chance.randrange(max(1, len(lines)))
    return "".join(lines[first : first + 12])


def _edits(chance: random.Random, path: str, text: str) -> Iterator[Event]:
    """What may have led to this text: lines that were others, lines that were not there."""
    lines = text.splitlines(keepends=True)
    for _ in range(chance.randrange(9)):
        if not lines:
            return
        at = chance.randrange(len(lines))
        before = [*lines[:at], *([chance.choice(lines)] if chance.random() < 0.6 else []), *lines[at + 1 :]]
        if before != lines:
            yield Event(path, "".join(before), text, predicted=chance.random() < 0.3)


def test_the_door_reads_what_the_editor_shows() -> None:
    for asked in moments(random.Random(2)):
        read = parse_zeta(asked.prompt)
        shown = asked.excerpt
        assert read.edit.region == asked.region
        assert read.edit.prefix == asked.file[shown.start : shown.region_start]
        assert read.edit.suffix.removesuffix("\n") == asked.file[shown.region_end : shown.end].removesuffix("\n")
        assert read.markers == asked.markers


def question(asked: Asked) -> dict[str, Any]:
    return {"model": "zeta2.1", "prompt": asked.prompt, "max_tokens": 2048, "stop": list(STOP)}


def test_a_rename_in_a_file_of_each_language_goes_on(client: TestClient) -> None:
    changed = set()
    for path, text in files(6, seed=5):
        asked = _renamed(path, text)
        if asked is None:
            continue
        body = client.post("/v1/completions", json=question(asked)).json()
        if applied(asked, body["choices"][0]["text"]) != asked.file:
            changed.add(path.rpartition(".")[2])
    assert len(changed) >= 5, changed


def _renamed(path: str, text: str) -> Asked | None:
    """A name that stands on two lines, once it was changed on the first of them."""
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        names = [word for word in line.replace("(", " ").replace(",", " ").split() if word.isidentifier()]
        for name in (name for name in names if len(name) > 4):
            later = next((row for row in range(at + 1, min(at + 5, len(lines))) if name in lines[row]), None)
            if later is not None and line.count(name) == 1:
                after = "".join([*lines[:at], line.replace(name, f"{name}_new"), *lines[at + 1 :]])
                cursor = after.index(lines[later], sum(map(len, lines[:at])))
                return ask(path, after, cursor, [Event(path, text, after)])
    return None


# Zed never says what was accepted; its next prompt shows it.
PATH = "work/shape.py"
OLD = "def area(w, height):\n    return w * height\n\n\nprint(area(1, 2))\n"
NEW = OLD.replace("area(w,", "area(width,")


def post(client: TestClient, text: str, *events: Event) -> Any:
    asked = ask(PATH, text, text.index("return w") + 8, events)
    assert asked is not None
    body = client.post("/v1/completions", json=question(asked)).json()
    return body["id"], applied(asked, body["choices"][0]["text"])


def written() -> list[tuple[str, str]]:
    return [(each.id, each.outcome) for each in read(outcome_log_path())]


def test_a_prediction_that_the_user_did_not_take_stays_unknown(client: TestClient) -> None:
    rename = Event(PATH, OLD, NEW)
    post(client, NEW, rename)
    other = NEW.replace("return w *", "return 2 *")
    asked = ask(PATH, other, other.index("return 2"), [rename, Event(PATH, NEW, other)])
    assert asked is not None
    client.post("/v1/completions", json={"prompt": asked.prompt, "stop": list(STOP)})

    assert written() == []
