from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from tests.families.published.layout import write_config, write_tokenizer, writers

from calomel.engine import BlockCausal, CheckpointError, Engine
from calomel.families.configuration import read_config
from calomel.families.family import OpenOptions
from calomel.families.generation import generation_of
from calomel.families.memory import EstimateOptions
from calomel.families.plan import open_engine
from calomel.families.shards import Shards
from calomel.families.table import FAMILIES, UnknownFamilyError, find
from calomel.infer.in_process import open_folder
from calomel.prompts.tokenizer import TokenizerError
from calomel.storage import machine
from calomel.weights import nano_path

WRITERS = writers()
MIB = 1024 * 1024


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_a_configuration_is_of_its_family(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path)
    raw = read_config(tmp_path)

    assert find(tmp_path).name == name
    # What a token of the tokenizer, or the name, alone tells apart.
    alike = (
        {"dream", "diffucoder", "dreamon"},
        {"open-dcoder", "qwen2", "sweep-next-edit", "sweep-next-edit-v2"},
        {"a2d-mdlm", "a2d-bd3lm"},
        {"llama", "zeta2", "zeta2.1"},
    )
    others = {family.name for family in FAMILIES if family.recognises(raw)} - {name}
    assert others <= next((names for names in alike if name in names), set())


@pytest.mark.parametrize(
    ("model_type", "architecture"),
    [
        ("mamba", "MambaForCausalLM"),
        ("diffusion_gemma", "DiffusionGemmaForBlockDiffusion"),
        ("llada", "LLaDAModelLM"),
        ("illada", "ILLaDAForCausalLM"),
        ("CoDA", "CoDALanguageModel"),
        ("Dream", "DreamForCausalLM"),  # DreamReasoner, which has blocks
        ("nemotron_labs_diffusion", "NemotronLabsDiffusionModel"),
        ("Fast_dLLM_Qwen", "Fast_dLLM_QwenForCausalLM"),
    ],
)
def test_a_model_of_no_known_family_is_refused_with_what_it_says_and_what_there_is(
    tmp_path: Path, model_type: str, architecture: str
) -> None:
    write_config(tmp_path, {"model_type": model_type, "architectures": [architecture], "block_size": 32})

    with pytest.raises(UnknownFamilyError) as caught:
        find(tmp_path)

    assert f'model_type "{model_type}", architectures ["{architecture}"]' in str(caught.value)
    assert "calomel, sdar" in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 200_000], ids=["cut", "a list", "nested without end"])
def test_a_damaged_configuration_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)

    with pytest.raises(CheckpointError, match=r"config\.json is not valid JSON"):
        find(tmp_path)


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_weights_are_counted_as_the_headers_say_and_without_them_from_the_configuration(
    tmp_path: Path, name: str
) -> None:
    WRITERS[name](tmp_path)
    family, raw = find(tmp_path), read_config(tmp_path)
    numbers = sum(held.numbers for held in Shards(tmp_path).tensors.values())
    counted = family.estimate(raw, EstimateOptions(shards=Shards(tmp_path), dtype="float32"))
    told = family.estimate(raw, EstimateOptions(dtype="float32"))

    assert counted.weights == 4 * numbers
    assert told.weights == pytest.approx(counted.weights, rel=0.02)  # without the norms
    assert family.estimate(raw, EstimateOptions(shards=Shards(tmp_path), quantize="int8")).weights < 2 * numbers


_YARN = {"rope_type": "yarn", "factor": 4.0}
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("llama", {"rope_scaling": _YARN}, 'rope_scaling "yarn"; default, linear and'),
    (
        "llama",
        {"rope_parameters": {"full_attention": {"rope_theta": 1e4}}},
        "rope_parameters .*; one object of numbers",
    ),
    ("llama", {"rope_scaling": {"rope_type": "linear"}}, "factor"),
    ("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
    ("llama", {"quantization_config": {"quant_method": "gptq"}}, "weights quantised by another program; use the"),
    ("sdar", {"block_size": 1}, "block_size 1"),
    ("sdar", {"rope_scaling": _YARN}, 'rope_scaling "yarn"'),
    ("sdar", {"use_sliding_window": True}, "use_sliding_window"),
    ("sdar", {"hidden_act": "gelu"}, 'hidden_act "gelu"'),
    ("sdar", {"layer_types": ["sliding_attention"] * 2}, "layer_types"),
    ("sdar", {"rms_norm_eps": -1}, "rms_norm_eps"),
    ("sdar-moe", {"num_experts": None}, "num_experts"),
    ("llada2", {"num_experts": None}, "num_experts"),
    ("llada2", {"n_group": 3}, "16 experts are not 3 groups"),
    ("llada2", {"use_linear_attention": True}, "use_linear_attention"),
    ("llada2", {"vocab_size": 100}, "outside of its vocabulary"),
]


@pytest.mark.parametrize(("name", "changed", "told"), REFUSED)
def test_what_a_family_does_not_do_is_refused_by_name(
    tmp_path: Path, name: str, changed: dict[str, Any], told: str
) -> None:
    WRITERS[name](tmp_path)
    raw = {key: value for key, value in {**read_config(tmp_path), **changed}.items() if value is not None}
    with pytest.raises(CheckpointError, match=told.replace(" ", ".* ")):
        find(tmp_path).config(raw, tmp_path)


def test_a_model_that_says_nowhere_how_an_answer_ends_is_refused(tmp_path: Path) -> None:
    WRITERS["llama"](tmp_path)
    (tmp_path / "generation_config.json").unlink()
    write_tokenizer(tmp_path, ("<pad>",))
    with pytest.raises(CheckpointError, match="has no end token"):
        find(tmp_path).config({**read_config(tmp_path), "eos_token_id": None}, tmp_path)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        (
            {"memory.max": "4000000", "memory.current": "3000000", "memory.stat": "anon 1\ninactive_file 200000"},
            1_200_000,
        ),
        (
            {
                "memory/memory.limit_in_bytes": "4000000",
                "memory/memory.usage_in_bytes": "3000000",
                "memory/memory.stat": "cache 1\ntotal_inactive_file 200000\ntotal_active_file 50000",
            },
            1_250_000,
        ),
        ({}, 5_000_000),
    ],
    ids=["control groups", "older ones", "none"],
)
def test_the_memory_that_is_left_is_the_least_that_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], left: int
) -> None:
    monkeypatch.setattr("calomel.storage.machine.available_bytes", lambda: 5_000_000)
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"{text}\n")

    assert machine.free_bytes(tmp_path) == left


@pytest.mark.parametrize(
    ("free", "dtype", "resident", "tokens"),
    [
        (4096, "float32", 400, 65_536),
        (400, "float32", 400, 50_176),
        (150, "float32", 400, 16_384),
        # the program will take 400 MiB, and with bfloat16 on a CPU 500
        (360, "float32", 260, 19_456),
        (360, "bfloat16", 260, 23_552),
    ],
)
def test_as_many_contexts_are_cached_as_the_memory_that_is_left_has_room_for(
    monkeypatch: pytest.MonkeyPatch, free: int, dtype: str, resident: int, tokens: int
) -> None:
    monkeypatch.setattr("calomel.families.plan.free_bytes", lambda device: free * MIB)
    monkeypatch.setattr("calomel.families.plan.resident_bytes", lambda: resident * MIB)

    engine, _ = open_engine(nano_path(), OpenOptions(dtype=dtype))

    assert isinstance(engine, Engine)
    with engine:
        assert isinstance(engine.decoder, BlockCausal)
        assert engine.decoder.cache.tokens == tokens


def test_sampling_is_what_the_checkpoint_says(tmp_path: Path) -> None:
    own = find(nano_path())
    write_config(tmp_path, {"temperature": 0.6, "top_p": 0.95, "top_k": 0}, "generation_config.json")

    found = generation_of(own, {}, tmp_path)

    assert (found.temperature, found.top_p, found.top_k) == (0.6, 0.95, -1)
    assert found.policy == own.generation.policy
    write_config(tmp_path, {"temperature": 0.6, "do_sample": False}, "generation_config.json")
    assert generation_of(own, {}, tmp_path) == own.generation


def opened(folder: Path) -> None:
    open_folder(folder, OpenOptions(dtype="float32", cache_tokens=4096)).close()


@pytest.fixture
def own(tmp_path: Path) -> Path:
    shutil.copytree(nano_path(), tmp_path / "own")
    return tmp_path / "own"


def changed(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    raw = json.loads(path.read_text(encoding="utf-8"))
    change(raw)
    path.write_text(json.dumps(raw), encoding="utf-8")


@pytest.mark.parametrize("name", sorted(WRITERS))
def test_weights_that_give_no_numbers_are_refused_by_the_name_of_their_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "tiny"
    WRITERS[name](folder)
    for file in folder.glob("*.safetensors"):
        tensors = load_file(file)
        for key in tensors:
            if key.endswith("norm.weight") or "ln_f" in key:
                tensors[key].fill_(math.nan)
        save_file(tensors, file, metadata={"format": "pt"})

    with pytest.raises(CheckpointError, match=rf"first forward of {folder} gives NaN: .*; fetch it again"):
        open_engine(folder, OpenOptions(dtype="float32", cache_tokens=4096))


@pytest.mark.parametrize("name", sorted(WRITERS))
@pytest.mark.parametrize("value", [-1, math.nan, "x"], ids=repr)
def test_no_field_of_a_configuration_ends_in_a_traceback(tmp_path: Path, name: str, value: object) -> None:
    """Every number of every family's configuration in turn; what is not refused, opens."""
    WRITERS[name](tmp_path)
    raw = read_config(tmp_path)
    fields = [(raw, key) for key in raw] + [
        (inner, key) for inner in raw.values() if isinstance(inner, dict) for key in inner
    ]
    refused = 0
    for holder, key in fields:
        before = holder[key]
        if isinstance(before, bool) or not isinstance(before, int | float):
            continue
        holder[key] = value
        write_config(tmp_path, raw)
        try:
            opened(tmp_path)
        except (CheckpointError, TokenizerError) as error:
            refused += bool(str(error))
        holder[key] = before

    assert refused >= 5


def test_a_mask_that_is_text_is_refused(tmp_path: Path) -> None:
    WRITERS["sdar"](tmp_path)
    changed(tmp_path / "config.json", lambda raw: raw.update({"mask_token_id": 0}))

    with pytest.raises(TokenizerError, match=r"token 0 ends answers or is the mask .*, but is text in its tokenizer"):
        opened(tmp_path)


def swap(vocabulary: dict[str, int], one: str, other: str) -> None:
    vocabulary[one], vocabulary[other] = vocabulary[other], vocabulary[one]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda raw: swap(raw["model"]["vocab"], "<|end|>", "<|pad|>"),
            "end_token_id .* is 0, but its tokenizer has 2",
        ),
        (
            lambda raw: swap(raw["model"]["vocab"], "<|mask|>", "<|pad|>"),
            "mask_token_id .* is 1, but its tokenizer has 2",
        ),
        (lambda raw: swap(raw["model"]["vocab"], "a", "b"), "ids and merges are in different orders"),
        (lambda raw: swap(raw["model"]["vocab"], "re", "\u0120self"), "ids and merges are in different orders"),
        (
            lambda raw: raw["model"]["vocab"].update({"moreover+": 8192}),
            "vocab_size .* is 8192, but its tokenizer has 8193",
        ),
    ],
)
def test_a_tokenizer_of_another_checkpoint_is_refused(
    own: Path, change: Callable[[dict[str, Any]], object], said: str
) -> None:
    changed(own / "tokenizer.json", change)

    with pytest.raises((CheckpointError, TokenizerError), match=said) as caught:
        opened(own)
    assert str(own) in str(caught.value)
