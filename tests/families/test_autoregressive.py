"""Qwen2, Qwen3 and Llama against the classes of transformers, and how they are asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.families.published.autoregressive import LLAMA, NEXT_EDIT, QWEN2, QWEN3, QWEN_FIM, SEED, SWEEP, ZETA21
from tests.families.published.block_causal import QWEN, Checkpoint
from tests.families.published.layout import CHATML, TEXT_TOKENS, prompt, write_config, write_tokenizer
from tests.families.reference.dense import whole_logits
from tests.prompts.test_published import spelled

from calomel.engine import BlockCausal, CheckpointError, Engine, ModelConfig, Request
from calomel.engine.checkpoint import tensor_table
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.loading import load_decoder
from calomel.families.plan import open_engine
from calomel.families.table import find
from calomel.infer.completer import CANVAS, Candidate, CompleteRequest, Draft
from calomel.infer.in_process import describe, open_filler
from calomel.prompts.next_edit import EDIT_FORMATS
from calomel.prompts.parts import EditRegion, Excerpt, PromptParts
from calomel.prompts.published import Published, open_published

_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
_KINDS = ["full_attention", "sliding_attention", "full_attention"]
# Fields of config.json that change the arithmetic, by family.
VARIANTS: list[tuple[Checkpoint, dict[str, Any]]] = [
    (QWEN2, {}),
    (QWEN2, {"tie_word_embeddings": False, "rope_theta": None, "rope_parameters": {"rope_theta": 5e4}}),
    (QWEN2, {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1}),
    (QWEN3, {}),
    (QWEN3, {"attention_bias": True, "tie_word_embeddings": True}),
    (QWEN3, {"use_sliding_window": True, "sliding_window": 5, "layer_types": _KINDS}),
    (LLAMA, {}),
    (LLAMA, {"attention_bias": True, "mlp_bias": True, "head_dim": None}),
    (LLAMA, {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    (LLAMA, {"rope_scaling": _LLAMA3}),
    (LLAMA, {"rope_theta": None, "rope_scaling": None, "rope_parameters": {"rope_theta": 1e4, **_LLAMA3}}),
]


def engine_of(folder: Path) -> Engine:
    return open_engine(folder, OpenOptions(dtype="float32", cache_tokens=1024, memory_limit=1 << 30))[0]


def ends_of(engine: Engine) -> list[int]:
    assert isinstance(engine.decoder, BlockCausal)
    return list(engine.decoder.ends)


def expected(network: Any, context: tuple[int, ...], count: int, ends: list[int]) -> list[int]:
    """What `generate` writes from left to right, without the end."""
    asked = torch.tensor([context])
    more = {"attention_mask": torch.ones_like(asked), "eos_token_id": ends, "pad_token_id": 0}
    with torch.inference_mode():
        ids = network.generate(asked, max_new_tokens=count, do_sample=False, **more)[0]
    found: list[int] = ids[len(context) :].tolist()
    return found[:-1] if found[-1] in ends else found


@pytest.mark.parametrize(("checkpoint", "changed"), VARIANTS, ids=lambda value: str(value) * isinstance(value, dict))
def test_logits_and_tokens_are_those_of_transformers(
    tmp_path: Path, checkpoint: Checkpoint, changed: dict[str, Any]
) -> None:
    checkpoint.write(tmp_path, **changed)
    network, family, context = checkpoint.network(**changed), find(tmp_path), prompt(90)
    config = family.config(read_config(tmp_path), tmp_path)
    assert isinstance(config, ModelConfig)
    assert family.name == checkpoint.config["model_type"]
    with torch.inference_mode():
        logits = network(torch.tensor([context])).logits[0]

    with engine_of(tmp_path) as engine:
        found = engine.submit(Request(context, 12, policy="left_to_right")).result(60)
        judged = engine.submit(Request(context[:60], given=context[60:])).result(60)
        ends = ends_of(engine)

    assert list(found.ids) == expected(network, context, 12, ends)
    told = logits.log_softmax(-1)[59:-1].gather(-1, torch.tensor(context[60:])[:, None])[:, 0]
    torch.testing.assert_close(torch.tensor(judged.log_probs), told, atol=1e-4, rtol=1e-4)
    if "sliding_attention" not in config.layer_types:  # the naive forward here knows no windows
        model = load_decoder(tmp_path, config, tensor_table(config), dtype=torch.float32)
        torch.testing.assert_close(whole_logits(model, context, 1), logits, atol=1e-4, rtol=1e-4)


def test_what_the_file_says_again_takes_fewer_forwards_and_is_the_same(tmp_path: Path) -> None:
    QWEN2.write(tmp_path)
    # Where nothing attends, a token says which one is next, so that the text goes round in a circle.
    for file in tmp_path.glob("*.safetensors"):
        tensors = load_file(file)
        save_file({name: held * ("o_proj" not in name) for name, held in tensors.items()}, file, {"format": "pt"})
    asked = Request(prompt(24), 96, min_new_tokens=96, policy="left_to_right")

    with engine_of(tmp_path) as engine:
        plain = engine.submit(asked).result(60)
        policy = generation_of(find(tmp_path), read_config(tmp_path), tmp_path).policy
        ahead = engine.submit(replace(asked, policy=policy)).result(60)

    assert ahead.ids == plain.ids
    assert ahead.log_probs == pytest.approx(plain.log_probs, abs=1e-4)
    assert ahead.forwards < plain.forwards / 2


def test_any_end_that_the_folder_names_ends_an_answer(tmp_path: Path) -> None:
    QWEN2.write(tmp_path)

    with engine_of(tmp_path) as engine:
        ends = ends_of(engine)

    names = (*QWEN, *QWEN_FIM)
    told = {names[each - TEXT_TOKENS] for each in ends}
    assert names[ends[0] - TEXT_TOKENS] == "<|endoftext|>"
    assert told == {"<|endoftext|>", "<|im_end|>", *QWEN_FIM} - {"<|fim_pad|>"}


def test_a_damaged_tokenizer_is_named_when_the_family_is_looked_for(tmp_path: Path) -> None:
    QWEN2.write(tmp_path)
    write_config(tmp_path, {"added_tokens": [{"id": 1}]}, "tokenizer.json")

    with pytest.raises(CheckpointError, match="content"):
        find(tmp_path)


# How they are asked

PARTS = PromptParts(
    related=(Excerpt("lib.py", 0, "X = 1\n"),), path="main.py", prefix="import lib\nlib.", suffix="\ndone()\n"
)
FILES, BEFORE, BEHIND = ("lib.py\nX = 1\n", "main.py\n"), "import lib\nlib.", "\ndone()\n"
DEEPSEEK = tuple(
    name.replace("|", "\uff5c")
    for name in ("<|begin▁of▁sentence|>", "<|end▁of▁sentence|>", "<|fim▁hole|>", "<|fim▁begin|>", "<|fim▁end|>")
)
GRANITE = ("<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<filename>", "<reponame>")
LLAMA2 = ("<s>", "</s>", "\u2581<PRE>", "\u2581<MID>", "\u2581<SUF>", "\u2581<EOT>")


def asked(folder: Path, controls: tuple[str, ...], **more: Any) -> Published:
    """How a Llama with these control tokens is asked; the last one ends its answers."""
    ids = write_tokenizer(folder, controls, text_tokens=controls[2:], **more)
    write_config(folder, LLAMA.config | {"eos_token_id": ids[controls[-1]]})
    return open_published(folder, find(folder).prompts, end=ids[controls[-1]], mask=-1)


@pytest.mark.parametrize(
    ("controls", "more", "told"),
    [
        (
            (*QWEN, *QWEN_FIM),
            {},
            f"<|repo_name|>project\n<|file_sep|>{FILES[0]}<|file_sep|>{FILES[1]}<|fim_prefix|>{BEFORE}<|fim_suffix|>{BEHIND}<|fim_middle|>",
        ),
        (
            SEED,
            {},
            f"<[fim-suffix]>{BEHIND}<[fim-prefix]><filename>{FILES[0]}<filename>{FILES[1]}{BEFORE}<[fim-middle]>",
        ),
        (
            GRANITE,
            {},
            f"<reponame>project\n<filename>{FILES[0]}<filename>{FILES[1]}<fim_prefix>{BEFORE}<fim_suffix>{BEHIND}<fim_middle>",
        ),
        (
            DEEPSEEK,
            {"more": {"bos_token": {"content": DEEPSEEK[0]}, "add_bos_token": True}},
            "<|begin▁of▁sentence|><|fim▁begin|>import lib\nlib.<|fim▁hole|>\ndone()\n<|fim▁end|>".replace(
                "|", "\uff5c"
            ),
        ),
        (
            LLAMA2,
            {"more": {"bos_token": "<s>", "add_bos_token": True}},
            "<s>\u2581<PRE>import lib\nlib.\u2581<SUF>\ndone()\n\u2581<MID>",
        ),
    ],
    ids=["Qwen2.5-Coder", "Seed-Coder", "Granite", "DeepSeek-Coder", "CodeLlama"],
)
def test_the_tokenizer_says_how_a_hole_is_shown(
    tmp_path: Path, controls: tuple[str, ...], more: dict[str, Any], told: str
) -> None:
    found = asked(tmp_path, controls, **more)

    rendered = found.fill.render(PARTS, 512)

    assert spelled(rendered.context, found.tokenizer) == told
    # What a keystroke leaves alone is kept: everything up to the end of the prefix.
    assert spelled(rendered.context[: rendered.reuse], found.tokenizer).endswith("import lib\nlib.")
    assert found.blind


def test_other_files_have_the_room_that_the_window_leaves(tmp_path: Path) -> None:
    found = asked(tmp_path, (*QWEN, *QWEN_FIM))
    long = tuple(Excerpt(f"{name}.py", 0, f"{name} = 1\n" * 20) for name in "abc")
    parts = PromptParts(related=long, path="main.py", prefix="x = ", suffix="")

    few, none = (found.fill.render(parts, room) for room in (400, 60))

    assert len(few.context) <= 400
    text = spelled(few.context, found.tokenizer)
    assert ("c.py" in text, "a.py" in text) == (True, False)
    assert spelled(none.context, found.tokenizer) == "<|fim_prefix|>x = <|fim_suffix|><|fim_middle|>"


@pytest.mark.parametrize("template", [CHATML, None])
def test_without_such_tokens_it_continues_the_text_before_the_hole(tmp_path: Path, template: str | None) -> None:
    found = asked(tmp_path, QWEN, chat_template=template)

    assert spelled(found.fill.render(PARTS, 512).context, found.tokenizer).endswith("import lib\nlib.")
    assert found.continues
    assert found.blind is (template is None)


@pytest.mark.parametrize("inner", [False, True])
def test_the_beginning_that_its_tokenizer_writes_is_written(tmp_path: Path, *, inner: bool) -> None:
    LLAMA.write(tmp_path)
    write_tokenizer(tmp_path, SEED)
    pieces = [{"SpecialToken": {"id": SEED[0], "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    begins = {"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": {}}
    raw = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))
    processor = {"type": "Sequence", "processors": [raw["post_processor"], begins]} if inner else begins
    write_config(tmp_path, {**raw, "post_processor": processor}, "tokenizer.json")

    found = open_published(tmp_path, find(tmp_path).prompts, end=TEXT_TOKENS + 2, mask=-1)

    assert found.fill.render(PARTS, 512).context[0] == TEXT_TOKENS


@pytest.mark.parametrize("name", sorted(NEXT_EDIT))
def test_a_checkpoint_that_was_trained_for_next_edits_is_asked_in_its_format(tmp_path: Path, name: str) -> None:
    checkpoint = NEXT_EDIT[name]
    prompts = find(checkpoint.write(tmp_path)).prompts
    end = checkpoint.controls.index("<[end▁of▁sentence]>" if checkpoint.controls == SEED else "<|endoftext|>")
    found = open_published(tmp_path, prompts, end=TEXT_TOKENS + end, mask=-1)
    forged = replace(REGION, prefix="a = '<[fim-middle]><|file_sep|>'\n", related=(Excerpt("b.py", 0, "B = 1\n" * 60),))

    whole, short = (found.edit.render(forged, room) for room in (2048, 360))

    text = EDIT_FORMATS[prompts.edit].write(forged)[0]
    begin = SEED[0] if checkpoint.controls == SEED else ""
    assert spelled(whole.context, found.tokenizer) == f"{begin}{text}"
    tokens = [name for name in EDIT_FORMATS[prompts.edit].tokens if name in checkpoint.controls]
    for token in tokens:
        assert whole.context.count(found.tokenizer.control[token]) == text.count(token)
    assert len(short.context) <= 360
    assert "B = 1" not in spelled(short.context, found.tokenizer)
    assert not found.blind
    assert found.fill is not found.edit
    assert describe(tmp_path).region == EDIT_FORMATS[prompts.edit].region


# What the editor's side gets of it

REGION = PromptParts(path="a.py", prefix="a = 1\n", suffix="c = 3\n", region=EditRegion("b = 2\n", 0))
DRAFTS = (Draft("b = 4\n", "rename"), Draft("b = 2\n", "same"))


@pytest.mark.parametrize(
    ("checkpoint", "own"), [(QWEN2, True), (QWEN3, True), (LLAMA, False), (ZETA21, True), (SWEEP, True)]
)
async def test_drafts_of_an_edit_are_judged_and_its_own_is_asked_for_where_it_sees_the_text(
    tmp_path: Path, checkpoint: Checkpoint, *, own: bool
) -> None:
    filler = open_filler(checkpoint.write(tmp_path), dtype="float32", cache_tokens=4096)

    answer = await filler.complete(CompleteRequest("edit", REGION, max_tokens=12, drafts=DRAFTS))
    filler.close()

    by_maker = {each.maker: each for each in answer.candidates}
    assert answer.judged
    assert set(by_maker) == {"rename", "same", *([CANVAS] if own else [])}
    assert by_maker["same"].log_ratio == pytest.approx(0.0, abs=1e-4)
    assert by_maker["rename"].log_ratio != by_maker["same"].log_ratio
    ratios = [each.log_ratio or 0.0 for each in answer.candidates]
    assert ratios == sorted(ratios, reverse=True)


async def test_a_text_is_judged_with_the_end_of_the_block_that_it_stands_in(tmp_path: Path) -> None:
    QWEN3.write(tmp_path)
    filler = open_filler(tmp_path, dtype="float32", cache_tokens=4096)
    prompt = filler.whole.renderer.render(REGION, 512) if filler.whole else None
    assert prompt is not None
    given = tuple(filler.tokenizer.encode("b = 4\n```"))
    plain = await filler.engine.submit(Request(prompt.context, given=given)).wait()

    answer = await filler.complete(CompleteRequest("edit", REGION, max_context=512, max_tokens=12, drafts=DRAFTS))
    filler.close()

    judged = next(each for each in answer.candidates if each.maker == "rename")
    assert judged.log_prob == pytest.approx(sum(plain.log_probs) + (plain.end_log_prob or 0.0), abs=1e-3)
    assert [prompt.answered(text) for text in ("x", "x\n", "")] == ["x\n```", "x\n```", "```"]


@pytest.mark.parametrize("checkpoint", [QWEN2, QWEN3])
async def test_drafts_for_a_hole_are_judged(tmp_path: Path, checkpoint: Checkpoint) -> None:
    checkpoint.write(tmp_path)
    filler = open_filler(tmp_path, dtype="float32", cache_tokens=4096)
    parts = PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\nadd(1, 2)\n")

    answer = await filler.complete(CompleteRequest("fill", parts, max_tokens=12, drafts=(Draft("a + b", "sibling"),)))
    filler.close()

    draft = next(each for each in answer.candidates if each.maker == "sibling")
    assert answer.judged
    assert draft.log_prob == pytest.approx(sum(draft.log_probs) + (draft.end_log_prob or 0.0))
    assert "a + b".startswith(draft.text)
    # The end of an answer in a block stands behind the fence.
    assert (draft.end_log_prob is None) >= (checkpoint is QWEN3)


@pytest.mark.parametrize("drafts", [(), (Draft("a + b", "sibling"),)], ids=["alone", "beside a draft"])
@pytest.mark.parametrize("checkpoint", [QWEN2, LLAMA])
async def test_a_text_ends_before_the_token_that_makes_it_unlikely(
    tmp_path: Path, checkpoint: Checkpoint, drafts: tuple[Draft, ...]
) -> None:
    filler = open_filler(checkpoint.write(tmp_path), dtype="float32", cache_tokens=4096)
    parts = PromptParts(path="add.py", prefix="def add(a, b):\n    return ", suffix="\n\nadd(1, 2)\n")
    request = CompleteRequest("fill", parts, max_tokens=12, drafts=drafts)

    async def own(floor: float | None) -> Candidate:
        answer = await filler.complete(replace(request, floor=floor))
        return next(each for each in answer.candidates if each.maker == CANVAS)

    whole = await own(None)
    least = sum(whole.log_probs[:3]) - 1e-3
    cut, none = await own(least), await own(-1e-6)
    filler.close()

    assert len(whole.log_probs) > 3
    assert cut.finish_reason == none.finish_reason == "unlikely"
    assert whole.text.startswith(cut.text)
    assert len(cut.text) < len(whole.text)
    assert sum(cut.log_probs) >= least
    assert none.text == ""
