"""What is asked of Mercury, Zeta 2 and Sweep, beside requests that their editors' clients sent (data of others)."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server import _upstreams as played
from tests.server._upstreams import Play, served

from calomel.bench.room import Room
from calomel.bench.suite import Case, read_suite
from calomel.infer.completer import CompleteAnswer, CompleteRequest, Kind, ModelInfo
from calomel.infer.upstream.completer import UpstreamCompleter
from calomel.infer.upstream.exchange import Target
from calomel.prompts.edit_prompt import parse_edits
from calomel.prompts.fim_tokens import FORMATS, write_fim
from calomel.prompts.mercury import write_mercury
from calomel.prompts.next_edit import EDIT_FORMATS, FILE, MERCURY_REGION
from calomel.prompts.parts import EditRegion, PromptParts, RegionBounds
from calomel.replay.events import Changed, Closed, Focused, Opened
from calomel.suggest.snapshot import Trigger
from calomel.workspace.settings import SuggestSettings, UpstreamFormat

DATA = Path(os.environ.get("CALOMEL_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SUITE = DATA / "next-edit-scenarios"
CURSOR = re.compile(r"<\|(?:user_)?cursor\|>")
# Where a region begins and ends is each editor's choice.
TAGS = re.compile(r"^<\|/?code_to_edit\|>\n", re.MULTILINE)
HISTORY = re.compile(
    r"(<\|edit_diff_history\|>|<filename>edit_history)\n(.*?)(?=<\|/edit_diff_history|<filename>)", re.DOTALL
)
_NEAR = 12


class Asked:
    """A model that says nothing and remembers what it was asked."""

    address: str | None = None

    def __init__(self, region: RegionBounds) -> None:
        self.region, self.parts = region, list[PromptParts]()

    async def info(self) -> ModelInfo:
        return ModelInfo("asked", "0" * 16, ("fill", "edit"), 8192, 2048, None, "0", self.region, source="edits")

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        if request.kind == "edit" and request.own:
            self.parts.append(request.parts)
        return CompleteAnswer((), model="asked", judged=False)

    async def aclose(self) -> None: ...


def bodies(provider: str) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case, and the first request that was recorded for it."""
    if not SUITE.is_dir():
        pytest.skip(f"there are no recordings in {SUITE}")
    for case in read_suite(SUITE)[0]:
        place = SUITE / "recorded" / case.name.partition("@")[0] / f"{provider}.ndjson"
        rows = map(json.loads, place.read_text(encoding="utf-8").splitlines())
        yield case, json.loads(base64.b64decode(next(row["body_b64"] for row in rows if row["kind"] == "request")))


def prompts(provider: str) -> Iterator[tuple[Case, str]]:
    """Every case, and its prompt."""
    for case, body in bodies(provider):
        yield case, body["messages"][0]["content"] if "messages" in body else body["prompt"]


def recorded(provider: str) -> Iterator[tuple[Case, str]]:
    """Cases whose cursor was recorded, and the prompt."""
    for case, prompt in prompts(provider):
        before, behind = CURSOR.split(TAGS.sub("", prompt))
        if before.endswith(case.text[: case.offset][-_NEAR:]) and behind.startswith(case.text[case.offset :][:_NEAR]):
            yield case, prompt


def parts_of(case: Case, region: RegionBounds) -> PromptParts:
    """What the model of an editor would be asked there."""

    async def ask() -> PromptParts:
        asked = Asked(region)
        room = Room(asked, SuggestSettings(debounce_seconds=0.0))
        room.play([event for event in case.log.events if isinstance(event, Opened | Changed | Closed | Focused)])
        room.settle()
        await room.ask(case.name, case.scenario.file, case.offset, Trigger.EXPLICIT)
        await room.suggester.aclose()
        return asked.parts[0]

    return asyncio.run(ask())


def told(prompt: str) -> str:
    """A prompt without what its client makes up, or chooses.

    Recorded edits are numbered from line 1, have their unchanged lines on both sides and no blank ones, and in Zeta's
    prompts the newest comes first.
    """

    def edits(found: re.Match[str]) -> str:
        hunks = parse_edits(found[2])
        shown = (f"\n{each.path.partition('#')[0]}\n{each.before}{each.after}" for each in hunks)
        return found[1] + re.sub(r"\n\s*\n", "\n", "".join(sorted(shown)))

    return HISTORY.sub(edits, TAGS.sub("", prompt))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("provider", "region", "write"),
    [
        ("mercuryapi", MERCURY_REGION, write_mercury),
        ("zeta-2", EDIT_FORMATS["zeta2"].region, lambda parts: EDIT_FORMATS["zeta2"].write(parts)[0]),
    ],
)
def test_a_recorded_situation_is_asked_about_in_the_same_words(provider: str, region: RegionBounds, write: Any) -> None:
    found = list(recorded(provider))

    assert len(found) >= 12
    for case, prompt in found:
        assert told(write(parts_of(case, region))) == told(prompt), case.name


@pytest.mark.slow
def test_a_recorded_hole_is_asked_for_in_the_same_words() -> None:
    for case, prompt in prompts("qwen3.5-4B"):
        before, behind = prompt.removeprefix("<|fim_prefix|>").removesuffix("<|fim_middle|>").split("<|fim_suffix|>")
        assert f"{before}{behind}" in case.text
        assert write_fim(PromptParts(path=case.scenario.file, prefix=before, suffix=behind), FORMATS["qwen"]) == prompt


# The fields of a request in which ours differs from those that were recorded, and why.
DIFFERENT = {
    "prompt": "compared above", "messages": "compared above",
    "stream": "an answer is over for us before it is for the server",
    "stream_options": "the tokens of a prompt are counted",
    "logprobs": "how sure the model is",
    "skip_special_tokens": "vLLM would leave them out of the text in which it looks for `stop`",
    "temperature": "Mercury's is 0 by default",
    "max_tokens": "an answer is as long as its region, or `suggest.max_tokens`",
    "n": "1 by default", "echo": "off by default",
    "model": "Mercury's next model",
}  # fmt: skip
# What ends an answer: ours is what the model was trained to write behind it.
STOPS = {
    "zeta-2": "their end of the region is left to `parse_zeta`, which also reads an answer that goes on behind it",
    "sweep-next-edit-7B": "and the token before a repository",
    "qwen3.5-4B": "theirs are the tokens of a hole, which no answer has",
}
SERVERS: dict[str, tuple[Any, UpstreamFormat, str | None]] = {
    "mercuryapi": (played.mercury, "mercury", None),
    "zeta-2": (played.vllm, "vllm", "zeta-2"),
    "sweep-next-edit-7B": (played.vllm, "vllm", "sweep-next-edit-7B"),
    "qwen3.5-4B": (played.vllm, "vllm", "Qwen/Qwen3.5-4B"),
}


@pytest.mark.slow
@pytest.mark.parametrize("provider", SERVERS)
def test_each_field_that_differs_from_a_recorded_request_has_its_reason(provider: str) -> None:
    app, wire, model = SERVERS[provider]
    play = Play(models=(model or "",), region="```\nx = 1\n```")
    kind: Kind = "fill" if provider.startswith("qwen") else "edit"
    parts = PromptParts(path="a.py", prefix="x = ", suffix="\n", region=EditRegion("", 0) if kind == "edit" else None)

    async def ask(url: str) -> None:
        completer = UpstreamCompleter(Target(url, wire, model))
        await completer.complete(CompleteRequest(kind, parts, max_tokens=16))
        await completer.aclose()

    with served(app(play)) as url:
        asyncio.run(ask(url))
    ours = play.asked[-1][1]
    for _, theirs in bodies(provider):
        differs = {name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)}
        assert differs - DIFFERENT.keys() == ({"stop"} if provider in STOPS else set())
        assert ("model" in differs) == (provider == "mercuryapi")


def sections(prompt: str) -> dict[str, str]:
    """The texts below each kind of heading; those of edits below `edits`."""
    found: dict[str, str] = {}
    for section in prompt.split(FILE)[1:]:
        head, _, text = section.partition("\n")
        kind = "edits" if text.startswith("original:\n") else head.partition("/")[0] if "/" in head else "file"
        found[kind] = found.get(kind, "") + text
    return found


@pytest.mark.slow
def test_sweep_is_shown_the_recorded_edits_and_cursor_and_as_its_card_says_the_last_edit_undone() -> None:
    """The recorded client shows the file and `original/` as they are now, and the whole file as region."""
    form, found = EDIT_FORMATS["sweep-v2"], list(recorded("sweep-next-edit-7B"))
    undone = 0
    assert len(found) >= 10
    for case, prompt in found:
        theirs, ours = sections(prompt), sections(form.write(parts_of(case, form.region))[0])
        lines = {*ours.get("edits", "").splitlines()} - {""}
        assert lines <= {*theirs.get("edits", "").splitlines()}, case.name
        assert bool(lines) == ("edits" in theirs), case.name
        wide, narrow = (CURSOR.split(each["current"]) for each in (theirs, ours))
        assert wide[0].endswith(narrow[0]), case.name
        assert wide[1].startswith(narrow[1].rstrip("\n")), case.name
        assert theirs["original"].strip() == "".join(wide).strip(), case.name
        undone += ours["original"].strip() != "".join(narrow).strip()
    assert undone >= 3
