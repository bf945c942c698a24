"""The race over holes as a whole, with a tiny random model and real engines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import zstandard

from calomel.bench.model import open_model
from calomel.bench.peer_engines import TransformersPeer
from calomel.bench.peers import Ours, PeersOptions, Theirs, moments_going_down, run_peers
from calomel.engine import DiffusionConfig, ModelConfig, Transformer
from calomel.engine.checkpoint import save_checkpoint
from calomel.report.heldout import read_heldout
from calomel.training.documents import train_tokenizer

pytestmark = pytest.mark.slow

FUNCTION = '''def total_{number}(values: list[int]) -> int:
    """The sum of values, {number} times."""
    return {number} * sum(value for value in values if value)


'''


@pytest.fixture
def heldout(tmp_path: Path) -> Path:
    rows = [
        {
            "package": f"package{number}",
            "path": f"file{number}.py",
            "language": "python",
            "text": "".join(FUNCTION.format(number=number * 100 + each) for each in range(10)),
        }
        for number in range(4)
    ]
    path = tmp_path / "heldout.jsonl.zst"
    path.write_bytes(zstandard.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return path


@pytest.fixture
def tiny(heldout: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    texts = [file.text for file in read_heldout(heldout)]
    tokenizer = train_tokenizer(texts, folder / "tokenizer.json", vocab_size=400)
    config = ModelConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=2048,
        sliding_window=64,
        layer_types=("sliding_attention", "full_attention"),
        diffusion=DiffusionConfig(mask_token_id=tokenizer.mask, end_token_id=tokenizer.end, verifiable=True),
    )
    torch.manual_seed(7)
    model = Transformer(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.3)
    with torch.no_grad():  # ours never predicts it, the peers do not know it
        model.embed_tokens.weight[tokenizer.mask] = 0
    save_checkpoint(model, folder, dtype=torch.float32)
    return folder


def test_transformers_answers_every_hole_as_ours_does_left_to_right(tiny: Path, heldout: Path) -> None:
    pytest.importorskip("transformers")
    with open_model(tiny, dtype="float32") as model:
        moments = moments_going_down(read_heldout(heldout), model.measure, context=900, places=2, moments=3, seed=1)
        moments = [replace(moment, hole=replace(moment.hole, max_tokens=8)) for moment in moments]
        own = Ours(model, policy="left_to_right", as_doors=False)
        peer = Theirs(model, TransformersPeer(tiny, dtype="float32", threads=1))
        for moment in moments:
            for asked in (moment.earlier, moment):
                mine, other = own.fill(asked, 900), peer.fill(asked, 900)
                assert (mine.text, mine.prompt) == (other.text, other.prompt)
            assert mine.read < mine.prompt / 2
            assert other.read < other.prompt / 2


def test_the_report_has_every_contenders_figures(tiny: Path, heldout: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("llama_cpp")
    report = run_peers(
        PeersOptions(
            model=tiny,
            context=900,
            holes=6,
            quick=True,
            threads=(1,),
            heldout=heldout,
        )
    )
    report.write(json_path=tmp_path / "peers.json", results=None)
    flat = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    for name in ("ours", "transformers", "llamacpp"):
        assert {f"ms_per_character_{name}", f"exact_match_{name}", f"p50_ms_{name}"} <= set(flat)
    # From the cursor on, all are given the same.
    for name in ("transformers", "llamacpp"):
        assert flat[f"prompt_tokens_{name}"] == flat["prompt_tokens_ours_model_alone"]
    assert {"vs_transformers", "vs_llamacpp", "vs_llamacpp_as_right_as_transformers"} <= set(flat)
    assert report.bench == "bench peers quick"
