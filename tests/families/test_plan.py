"""What fits into a memory, and what is said where something does not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.families.published.layout import writers

from calomel.families.facts import Published
from calomel.families.family import Family, OpenOptions
from calomel.families.memory import EstimateOptions
from calomel.families.plan import OutOfMemoryRefusedError, plan, plan_of, remedies
from calomel.families.table import FAMILIES

GIB = 1024**3
GUIDE = [(family, each) for family in FAMILIES for each in family.facts.checkpoints if each.shape]
CARD = OpenOptions(device="cuda", dtype="bfloat16")


def name_of(row: object) -> str:
    return row.name if isinstance(row, Published | Family) else str(row)


@pytest.mark.parametrize(("family", "checkpoint"), GUIDE, ids=name_of)
def test_a_shape_has_the_parameters_that_the_checkpoint_is_said_to_have(family: Family, checkpoint: Published) -> None:
    weights = family.estimate(checkpoint.config, EstimateOptions()).weights / 2e9

    assert weights == pytest.approx(checkpoint.billions, rel=0.05)


@pytest.mark.parametrize(("family", "checkpoint"), GUIDE, ids=name_of)
def test_on_a_card_of_24_gb_whatever_has_weights_for_it_opens_by_default_with_room_for_two_contexts(
    family: Family, checkpoint: Published
) -> None:
    weights = family.estimate(checkpoint.config, EstimateOptions()).weights

    found = plan(family, checkpoint.config, CARD, 23 * GIB)

    if weights <= 17e9:
        assert found is not None
        # Where all 32 heads have keys of their own, a token takes half a megabyte.
        wide = checkpoint.config.get("num_key_value_heads") == 32 and family.name == "llama"
        assert found.options.cached >= (8_192 if wide else 16_384)
        assert found.estimate.total <= 23 * GIB
    else:
        assert found is None


@given(
    row=st.sampled_from(GUIDE),
    gib=st.integers(6, 80),
    cache=st.none() | st.integers(4, 256).map(lambda count: count * 1024),
    batch=st.none() | st.integers(1, 64),
    quantize=st.sampled_from([None, "int8"]),
)
def test_what_is_opened_fits_and_what_a_refusal_recommends_is_accepted(
    row: tuple[Family, Published], gib: int, cache: int | None, batch: int | None, quantize: Any
) -> None:
    family, checkpoint = row
    options = OpenOptions(device="cuda", dtype="bfloat16", cache_tokens=cache, max_batch=batch, quantize=quantize)
    found = plan(family, checkpoint.config, options, gib * GIB)
    if found is not None:
        assert found.estimate.total <= gib * GIB
        assert cache in {None, found.options.cache_tokens}
        assert batch in {None, found.options.max_batch}
        return
    for words, _ in remedies(family, checkpoint.config, options, gib * GIB):
        assert plan(family, checkpoint.config, with_flags(options, words), gib * GIB) is not None


def with_flags(options: OpenOptions, words: str) -> OpenOptions:
    """`options`, changed as a person would who types what was recommended."""
    said = dict(re.findall(r"--(\S+) (\S+)", words))
    assert said
    return OpenOptions(
        device=options.device,
        dtype=options.dtype,
        cache_tokens=int(said.get("cache-tokens", options.cache_tokens or 0)) or None,
        max_batch=int(said.get("max-batch", options.max_batch or 0)) or None,
        quantize=said.get("quantize", options.quantize),
        memory_limit=options.memory_limit,
    )


def test_a_refusal_has_the_figures_and_what_it_recommends_opens(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    writers()["sdar"](folder)
    (folder / "tokenizer_config.json").write_text("{")  # nothing but headers is read
    least = plan_of(folder, OpenOptions(dtype="float32", memory_limit=GIB)).estimate
    options = OpenOptions(dtype="float32", cache_tokens=1 << 21, max_batch=64, memory_limit=least.total)

    with pytest.raises(OutOfMemoryRefusedError) as caught:
        plan_of(folder, options)

    told = str(caught.value)
    assert re.match(r"tiny needs [\d.]+ GiB of memory on cpu \(weights .*, cached contexts .*, one step .*\)", told)
    assert "is allowed; nothing was loaded. With --" in told
    assert plan_of(folder, with_flags(options, told)).estimate.total <= least.total


def test_where_nothing_fits_that_is_said(tmp_path: Path) -> None:
    writers()["sdar"](tmp_path / "tiny")

    with pytest.raises(OutOfMemoryRefusedError, match="choose a smaller checkpoint, or another device"):
        plan_of(tmp_path / "tiny", OpenOptions(memory_limit=1000))
