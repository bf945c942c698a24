"""Whatever a whole text hides is hidden in each of its parts, wherever a part leaves for a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from tests.server.conftest import FakeFiller
from tests.suggest.test_stateless import liking, rewritten
from tests.workspace.folder import Folder
from tests.workspace.secret_kinds import below

from calomel.context.builder import ContextBuilder
from calomel.context.window import EstimateCounter
from calomel.prompts.edit_prompt import EditPrompt
from calomel.prompts.parts import text_hunks
from calomel.workspace.documents import Position, RangeChange
from calomel.workspace.longest_match import LongestMatch
from calomel.workspace.secrets import mask, spans

KINDS = below()
TOP = "".join(f"total_{number} = count(items)\n" for number in range(30))


def hidden(*texts: str) -> set[str]:
    """What masking the texts as a whole hides, in pieces: a part of a secret is a secret."""
    found = {text[start:end] for text in texts for start, end, _ in spans(text) if end - start > 5}
    secrets = {each for each in found if "PRIVATE KEY" not in each}
    return {secret[at : at + 10] for secret in secrets for at in range(max(1, len(secret) - 9))}


def told(shown: str, *texts: str) -> list[str]:
    return sorted(piece for piece in hidden(*texts) if piece in shown)


@st.composite
def changed(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, str]:
    """A text, and the same after an edit of one of its lines: typed, changed, cut or pasted twice."""
    text = draw(texts)
    lines = text.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines) - 1))
    column = draw(st.integers(0, len(lines[at]) - 1))
    how = draw(st.sampled_from(["line", "rest", "letter", "two"]))
    before = list(lines)
    if how == "line":
        del before[at]
    elif how == "two":
        del before[at : at + 2]
    elif how == "rest":
        before[at] = lines[at][:column] + "\n"
    else:
        before[at] = lines[at][:column] + "q7" + lines[at][column:]
    return "".join(before), text


TEXTS = st.sampled_from([f"{TOP}{kind.text}{TOP}" for kind in KINDS])


KEYS = f'{TOP}"api_keys": [\n  "w2s4KKY0E2G6yG0v9mr39506z7qBRXIW",\n  "j4LTcHckTep08qdRXtG3kRCkUepKztxS"\n]\n{TOP}'
# Half of a key, which looks like none.
HALF_TYPED = KEYS.replace('G6yG0v9mr39506z7qBRXIW",', ""), KEYS


def place(text: str, offset: int) -> tuple[int, int]:
    return text.count("\n", 0, offset), offset - text.rfind("\n", 0, offset) - 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150)
@given(edit=changed(TEXTS), closes=st.booleans())
@example(edit=HALF_TYPED, closes=True)
def test_an_edit_in_a_secret_is_hidden_from_a_question_in_another_file(
    tmp_path: Path,
    edit: tuple[str, str],
    closes: bool,  # noqa: FBT001
) -> None:
    old, new = edit
    folder = Folder(tmp_path, {"keys.py": old, "main.py": "total = count(items)\n\n"})
    keys, main = folder.open("keys.py"), folder.open("main.py")
    workspace = folder.workspace
    matches = LongestMatch(shows=workspace.shows_line)
    for uri in (keys, main):
        document = workspace.documents[uri]
        matches.opened(document)
    document = workspace.documents[keys]
    change = next(iter(_changes(old, new)))
    workspace.change(keys, 2, [change])
    matches.opened(document)
    assert document.text == new
    shown = [repr(workspace.masked(workspace.history.open_edit()))]
    workspace.focus(main)
    if closes:
        workspace.close(keys)
    situation = workspace.situation(main, 0)
    assert situation is not None
    prompt = ContextBuilder(EstimateCounter()).build(situation, 4096)
    shown += [repr(prompt), *(repr(each) for each in (situation.hunks, situation.related))]
    if not closes:
        own = workspace.situation(keys, len(TOP))
        assert own is not None
        shown += [own.text]
        found = (matches.find(workspace.documents[main], offset) for offset in (10, 20))
        shown += [each.text for each in found if each is not None]
    assert told("\n".join(shown), old, new) == []


def _changes(old: str, new: str) -> Iterator[RangeChange]:
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    (first, head), (last, tail) = place(old, start), place(old, len(old) - end)
    yield RangeChange(Position(first, head), Position(last, tail), new[start : len(new) - end])


@pytest.mark.parametrize("opens", [True, False], ids=["open", "on disk"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_excerpt_that_begins_below_the_line_that_announces_a_secret_hides_it(
    tmp_path: Path,
    kind: Any,
    opens: bool,  # noqa: FBT001
) -> None:
    text = f"{TOP}{kind.text}def charge_customer(items):\n    return count(items)\n"
    asked = "from keys import charge_customer\n\n\ncharge_customer(items)\n"
    with Folder(tmp_path, {"keys.py": text, "main.py": asked}) as folder:
        if opens:
            folder.open("keys.py")
            for row in range(28, text.count("\n"), 5):
                folder.type("keys.py", row, 0, "")
        folder.open("main.py")
        found = folder.ask("main.py", "charge_customer(")
        index = folder.related.index
        path = str(tmp_path / "keys.py")
        place = index.place(path)
        assert place is not None
        parts = [each.text for each in found]
        parts += ["".join(place.segment.masked_lines(place.number, row, row + 6)) for row in range(text.count("\n"))]
        assert any("charge_customer" in part for part in parts)
        assert told("\n\n".join(parts), text) == []


@settings(deadline=None, max_examples=150)
@given(edit=changed(TEXTS))
@example(edit=HALF_TYPED)
async def test_a_diff_that_a_client_sends_is_cut_from_masked_text(edit: tuple[str, str]) -> None:
    old, new = edit
    region = "total_0 = count(items)\n"
    model = liking()
    asked = EditPrompt("keys.py", "", region, new.removeprefix(region), None, text_hunks("keys.py", old, new))

    await rewritten(model, asked)

    assert told(repr(model.requests), old, new) == []


@pytest.mark.parametrize("kind", [each for each in KINDS if "\n" not in each.parts[0]], ids=lambda kind: kind.name)
def test_the_first_lines_of_what_a_client_sends_may_go_on_with_a_secret(
    client: TestClient, filler: FakeFiller, kind: Any
) -> None:
    at = kind.text.rindex("\n", 0, kind.text.index(kind.parts[-1])) + 1
    cut = kind.text[at:] + TOP
    if mask(kind.text) == kind.text or len(kind.parts[-1]) < 20:
        pytest.skip("no generated value")
    body = {"input_prefix": "x = ", "input_suffix": "\n", "input_extra": [{"filename": "keys.py", "text": cut}]}
    client.post("/infill", json=body)
    client.post("/infill", json={"input_prefix": cut, "input_suffix": "\n"})
    assert filler.requests
    assert told(repr(filler.requests), kind.text) == []


def test_a_file_of_secrets_that_a_client_shows_beside_its_own_is_left_out(
    client: TestClient, filler: FakeFiller
) -> None:
    extra = [{"filename": "deploy/.env", "text": "COLOUR=abracadabra\n"}, {"filename": "a.py", "text": "other = 1\n"}]
    client.post("/infill", json={"input_prefix": "x = ", "input_suffix": "\n", "input_extra": extra})
    assert "other = 1" in repr(filler.requests)
    assert "abracadabra" not in repr(filler.requests)


async def test_an_edit_of_a_file_of_secrets_that_a_client_sends_is_left_out() -> None:
    model = liking()
    edits = text_hunks(".env", "COLOUR=red\n", "COLOUR=abracadabra\n") + text_hunks("b.py", "x = 1\n", "y = 1\n")

    await rewritten(model, EditPrompt("a.py", "", "z = x\n", "", 4, edits))

    assert model.requests
    assert "abracadabra" not in repr(model.requests)
