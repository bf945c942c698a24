"""DiffusionGemma's loop is the one that is published: the same weights and seed give the same tokens as `generate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.families.published import diffusion_gemma as published
from tests.families.published.layout import write_config, write_weights
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import DiffusionGemmaForBlockDiffusion

from calomel.engine import CheckpointError, Engine, NoiseShape, Request, SamplingParams, UniformDiffusion
from calomel.engine.errors import InvalidRequestError
from calomel.families.configuration import read_config
from calomel.families.diffusion_gemma import DIFFUSION_GEMMA, unread
from calomel.families.family import OpenOptions
from calomel.families.gemma_network import Network, load
from calomel.families.generation import generation_of
from calomel.families.memory import EstimateOptions
from calomel.families.shards import Shards
from calomel.families.table import find

# torch warns of itself, while `generate` imports its compiler.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated:DeprecationWarning")

CANVAS, STEPS = 16, 10
CONTEXT, OTHER = (
    tuple(torch.randint(published.FIRST_TEXT, published.PICTURE, (45,), generator=seeded).tolist())
    for seeded in (torch.Generator().manual_seed(seed) for seed in (5, 6))
)
# Random weights are never as sure as trained ones: with this sampler some canvases are done early, others are not.
EASY: dict[str, Any] = {
    "t_max": 0.2,
    "t_min": 0.1,
    "confidence_threshold": 0.3,
    "sampler_config": {"_cls_name": "EntropyBoundSamplerConfig", "entropy_bound": 2.0},
    "max_denoising_steps": STEPS,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return published.write(tmp_path_factory.mktemp("gemma"), **EASY)


@pytest.fixture(scope="module")
def reference(folder: Path) -> Any:
    return DiffusionGemmaForBlockDiffusion.from_pretrained(folder, local_files_only=True, use_safetensors=True)


@pytest.fixture(scope="module")
def network(folder: Path) -> Network:
    raw = read_config(folder)
    shape = DIFFUSION_GEMMA.config(raw, folder)
    assert isinstance(shape, NoiseShape)
    return Network(load(folder, raw, dtype=torch.float32, device="cpu", ignored=unread), shape)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    with opened(folder) as engine:
        yield engine


def opened(folder: Path, **options: Any) -> Engine:
    return DIFFUSION_GEMMA.open(folder, OpenOptions(dtype="float32", threads=1, **options))


def asked(context: Sequence[int] = CONTEXT, **fields: Any) -> Request:
    sampling = SamplingParams(temperature=1.0, seed=fields.pop("seed", 3))
    given = {"canvas_lengths": (CANVAS,), "policy": "entropy_bound:2.0", "max_steps": STEPS, "max_new_tokens": CANVAS}
    return Request(tuple(context), sampling=sampling, **{**given, **fields})


def generated(model: Any, context: Sequence[int], seed: int) -> list[int]:
    """What `generate` answers, up to its end."""
    torch.manual_seed(seed)
    ids: Any = torch.tensor([context])
    row: list[int] = model.generate(ids, max_new_tokens=3 * CANVAS).sequences[0, len(context) :].tolist()
    return row[: next((at for at, token in enumerate(row) if token in published.ENDS), len(row))]


def test_logits_are_those_of_the_published_class(reference: Any, network: Network) -> None:
    ids = torch.tensor([CONTEXT])
    canvas = torch.randint(0, published.VOCABULARY, (1, CANVAS), generator=torch.Generator().manual_seed(8))
    signal = torch.randn(1, CANVAS, published.VOCABULARY, generator=torch.Generator().manual_seed(9)) * 4
    context = network.empty()
    for start in range(0, len(CONTEXT), 20):
        network.encode(CONTEXT[start : start + 20], context)
    for told in (None, signal):
        with torch.no_grad():
            expected = reference(input_ids=ids, decoder_input_ids=canvas, self_conditioning_logits=told).logits
            found = network.denoise(canvas, [None if told is None else told[0]], [context])
        assert (found - expected).abs().max() < 1e-4


def test_tokens_of_requests_beside_each_other_equal_those_of_generate_for_each(reference: Any, engine: Engine) -> None:
    asking = [(CONTEXT, 0), (OTHER, 4), (OTHER, 5), (CONTEXT[:20], 1)]
    requests = [asked(context, seed=seed, max_new_tokens=3 * CANVAS) for context, seed in asking]

    found = [handle.result() for handle in engine.submit_all(requests)]

    assert [list(result.ids) for result in found] == [generated(reference, *each) for each in asking]
    # With two of these seeds the tiny model happens to end its answer, in its first canvas and in its second.
    assert [len(result.ids) for result in found][:3] == [3 * CANVAS, 13, 23]
    assert len({result.steps for result in found}) > 1  # one row was done before another: they were not in step


@pytest.mark.parametrize(
    "sampler",
    [
        {"stability_threshold": 0, "confidence_threshold": 1.0, "t_max": 0.8, "t_min": 0.4},
        {"stability_threshold": 2, **{name: EASY[name] for name in ("t_max", "t_min", "confidence_threshold")}},
    ],
    ids=["sure is enough", "stable twice"],
)
def test_a_canvas_is_done_when_generate_says_so(
    reference: Any, network: Network, monkeypatch: pytest.MonkeyPatch, sampler: dict[str, Any]
) -> None:
    names = {"stable": "stability_threshold", "sure": "confidence_threshold", "hottest": "t_max", "coldest": "t_min"}
    shape = replace(network.shape, **{ours: sampler[theirs] for ours, theirs in names.items()})
    monkeypatch.setattr(network, "shape", shape)
    with Engine(UniformDiffusion(network, threads=1)) as serving:
        found = serving.submit(asked(seed=5, max_new_tokens=2 * CANVAS)).result()
    torch.manual_seed(5)
    output = reference.generate(torch.tensor([CONTEXT]), max_new_tokens=2 * CANVAS, **sampler)
    tokens = output.sequences[0, len(CONTEXT) :]
    assert list(found.ids) == tokens[: len(found.ids)].tolist()
    counted = (tokens != published.PAD).sum()
    assert found.steps == round(float(counted / output.tokens_per_forward[0]))
    assert 2 * shape.stable < found.steps < 2 * STEPS


def test_a_context_is_cut_back_to_what_the_next_one_shares_with_it(network: Network) -> None:
    canvas = torch.randint(0, published.VOCABULARY, (1, CANVAS), generator=torch.Generator().manual_seed(8))
    context = network.empty()
    network.encode(CONTEXT + OTHER, context)  # far beyond the sliding window
    for shared in (len(CONTEXT) + 3, 20, 0):
        context.cut(shared)
        network.encode(OTHER, context)
        fresh = network.empty()
        network.encode((CONTEXT + OTHER)[:shared], fresh) if shared else None
        network.encode(OTHER, fresh)
        found, expected = (network.denoise(canvas, [None], [each]) for each in (context, fresh))
        assert context.length == shared + len(OTHER)
        assert (found - expected).abs().max() < 1e-4
        context.cut(shared)
        network.encode((CONTEXT + OTHER)[shared:], context)


def test_what_a_sliding_window_has_forgotten_is_encoded_anew(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("calomel.families.gemma_network.SLACK", 8)
    context = network.empty()
    network.encode(CONTEXT + OTHER, context)
    assert context.reaches(len(CONTEXT + OTHER) - 8)
    assert not context.reaches(len(CONTEXT + OTHER) - 9)
    assert not context.reaches(0)
    with Engine(UniformDiffusion(network, threads=1)) as serving:
        serving.submit(asked(CONTEXT + OTHER)).result()
        near = serving.submit(asked((*CONTEXT, *OTHER, 7))).result()
        far = serving.submit(asked((*CONTEXT, *OTHER[:10], 7))).result()
    assert (near.cached_tokens, far.cached_tokens) == (len(CONTEXT + OTHER), 0)


def test_how_it_generates_is_read_from_the_folder(folder: Path, tmp_path: Path) -> None:
    found = generation_of(DIFFUSION_GEMMA, read_config(folder), folder)
    assert (found.policy, found.max_steps, found.fill_canvases) == ("entropy_bound:2.0", STEPS, (CANVAS,))
    bare = published.write(tmp_path)
    (bare / "generation_config.json").unlink()
    found = generation_of(DIFFUSION_GEMMA, read_config(bare), bare)
    assert (found.policy, found.max_steps, found.temperature) == ("entropy_bound:0.1", 48, 1.0)
    assert find(folder) is DIFFUSION_GEMMA


def test_a_picture_in_the_context_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidRequestError, match="a picture; this engine reads only text"):
        engine.submit(asked((1, published.PICTURE, 2)))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"auto_map": {"AutoModel": "code.Model"}}, "never runs a checkpoint's own code"),
        ({"quantization_config": {"quant_method": "awq"}}, "take the checkpoint in bfloat16"),
        ({"tie_word_embeddings": False}, "weights of their own"),
        ({"text_config": None}, "no text_config"),
        (
            {"text_config": {**published.config()["text_config"], "use_bidirectional_attention": "all"}},
            "both directions",
        ),
        ({"text_config": {**published.config()["text_config"], "hidden_size": 64}}, "does not match"),
        ({"text_config": {**published.config()["text_config"], **published.layers(4)}}, r"missing model\.decoder"),
    ],
)
def test_a_checkpoint_that_can_not_be_served_is_refused(tmp_path: Path, changed: dict[str, Any], sentence: str) -> None:
    folder = published.write(tmp_path)
    write_config(folder, {**published.config(), **changed})
    with pytest.raises(CheckpointError, match=sentence):
        opened(folder)


def test_the_encoders_names_do_where_the_decoders_are_not_there(folder: Path, tmp_path: Path) -> None:
    raw = published.config()
    renamed = {
        name.replace("model.decoder.layers", "model.encoder.language_model.layers")
        if "layer_scalar" not in name
        else name: tensor
        for name, tensor in published.state(raw).items()
    }
    write_weights(published.write(tmp_path, **EASY), renamed, shards=3)
    answers = []
    for where in (folder, tmp_path):
        with opened(where) as engine:
            answers.append(engine.submit(asked()).result().ids)
    assert answers[0] == answers[1]


def test_without_transformers_the_error_says_how_to_install_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> str:
        raise PackageNotFoundError

    for version, said in ((missing, "none"), (lambda _: "5.12.1", "5.12.1")):
        monkeypatch.setattr("calomel.families.diffusion_gemma.metadata.version", version)
        with pytest.raises(CheckpointError, match=rf"{said} is installed.*Calomel's extra .families."):
            opened(folder)


@pytest.mark.parametrize("quantize", ["int8", "int4"])
def test_small_weights_answer_as_the_rounded_numbers_do_and_are_kept_once(folder: Path, quantize: Any) -> None:
    raw = read_config(folder)
    options = OpenOptions(dtype="float32", threads=1, quantize=quantize)
    model = load(folder, raw, dtype=torch.float32, device="cpu", ignored=unread, quantize=quantize)
    matrix = model.model.decoder.layers[0].mlp.gate_proj
    whole = published.state(raw)["model.decoder.layers.0.mlp.gate_proj.weight"]
    step = whole.abs().amax(dim=-1, keepdim=True) / (127 if quantize == "int8" else 7)

    assert ((matrix.weight - whole).abs() <= step / 2 + 1e-6).all()
    assert model.model.encoder.language_model.layers[0].mlp.gate_proj is matrix
    assert DIFFUSION_GEMMA.estimate(raw, EstimateOptions(shards=Shards(folder), quantize=quantize)).weights < (
        DIFFUSION_GEMMA.estimate(raw, EstimateOptions(shards=Shards(folder))).weights
    )
    with DIFFUSION_GEMMA.open(folder, options) as engine:
        assert len(engine.submit(asked(CONTEXT[:20], min_new_tokens=9)).result().ids) >= 9


def test_the_estimate_counts_the_weights_that_are_loaded(folder: Path, network: Network) -> None:
    raw = read_config(folder)
    shards = Shards(folder)
    counted = DIFFUSION_GEMMA.estimate(raw, EstimateOptions(shards=shards, dtype="float32")).weights
    told = DIFFUSION_GEMMA.estimate(raw, EstimateOptions(shards=None, dtype="float32")).weights
    shards.close()
    assert counted == sum(tensor.nbytes for tensor in network.weights)
    assert told == pytest.approx(counted, rel=0.05)
