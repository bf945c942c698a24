"""Checkpoints of other makers behind the same face as our own: tiny random ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.families.writers import writers

from calomel.engine import CheckpointError
from calomel.prompts.parts import PromptParts
from calomel.prompts.tokenizer import TokenizerError
from calomel.suggest.completer import CANVAS, CompleteRequest, Draft, Fill, FillRequest
from calomel.suggest.filler import Filler, own_renderer
from calomel.suggest.in_process import EngineCompleter, open_filler
from calomel.suggest.launch import describe
from calomel.suggest.wire import decode_answer, encode_answer
from calomel.weights.identity import weights_id

ASK = FillRequest(
    "fill", PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\nadd(1, 2)\n"), max_tokens=12
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("published") / "tiny"
    writers()["stable-diffcoder"](place)
    return place


@pytest.fixture(scope="module")
def filler(folder: Path) -> Iterator[Filler]:
    opened = open_filler(folder, dtype="float32", cache_tokens=4096)
    yield opened
    opened.close()


async def test_pieces_of_a_stream_are_the_beginning_of_the_answer(filler: Filler) -> None:
    whole = filler.fill(ASK)
    items = [item async for item in filler.stream(ASK)]

    pieces, last = items[:-1], items[-1]
    assert isinstance(last, Fill)
    assert "".join(map(str, pieces)) == last.text == whole.text


async def test_the_family_decides_how_it_is_asked(filler: Filler) -> None:
    assert filler.generation.policy != "threshold:0.5"
    with pytest.raises(TypeError, match="another maker's"):
        own_renderer(filler.tokenizer)


async def test_drafts_for_a_hole_come_last_and_the_answer_says_that_nothing_was_judged(
    filler: Filler, folder: Path
) -> None:
    completer = EngineCompleter(filler, describe(folder))
    parts = PromptParts(path="add.py", prefix=ASK.parts.prefix, suffix=ASK.parts.suffix)
    drafts = (Draft("a + b", "sibling"), Draft("  ", "sibling"))

    answer = await completer.complete(CompleteRequest("fill", parts, max_tokens=12, drafts=drafts))

    own, draft = answer.candidates
    assert (own.maker, draft.text, draft.maker, draft.log_prob, draft.log_probs) == (
        CANVAS,
        "a + b",
        "sibling",
        None,
        (),
    )
    assert not answer.judged
    assert decode_answer(encode_answer(answer)) == answer


def test_what_the_files_say_of_it(folder: Path) -> None:
    told = describe(folder)

    assert (told.id, told.kinds, told.tokenizer) == ("tiny", ("fill", "edit"), None)
    assert told.max_context > 0


def test_its_identity_is_that_of_all_shards(folder: Path, tmp_path: Path) -> None:
    writers()["stable-diffcoder"](tmp_path)
    same = weights_id(tmp_path)
    shard = max(tmp_path.glob("*.safetensors"))
    changed = bytearray(shard.read_bytes())
    changed[-1] ^= 1
    shard.write_bytes(changed)

    assert same == weights_id(folder)
    assert weights_id(tmp_path) != same


def test_small_files_are_read_before_the_weights(tmp_path: Path) -> None:
    writers()["stable-diffcoder"](tmp_path)
    for name in ("tokenizer.json", "vocab.json"):
        (tmp_path / name).unlink(missing_ok=True)
    for shard in tmp_path.glob("*.safetensors"):
        shard.write_bytes(b"")

    with pytest.raises((TokenizerError, CheckpointError), match="token"):
        open_filler(tmp_path)
