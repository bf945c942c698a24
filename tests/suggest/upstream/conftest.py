from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.families.published.layout import CHATML, write_config, write_tokenizer
from tests.families.published.sdar import CONFIG, CONTROLS, GENERATION
from tests.suggest.upstream.served import Handler, serving

from calomel.families.configuration import read_config
from calomel.families.table import find
from calomel.prompts.published import PublishedTokenizer
from calomel.suggest.upstream.engine import UpstreamEngine
from calomel.suggest.upstream.shape import UpstreamShape
from calomel.suggest.upstream.target import Upstream

Open = Callable[..., UpstreamEngine]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Configuration and tokenizer of a published checkpoint; no weights."""
    place = tmp_path_factory.mktemp("upstream") / "sdar"
    write_config(place, CONFIG)
    write_config(place, GENERATION, "generation_config.json")
    write_tokenizer(place, CONTROLS, files="vocab and merges", chat_template=CHATML, more={"mask_token": "<|MASK|>"})
    return place


@pytest.fixture(scope="session")
def shape(folder: Path) -> UpstreamShape:
    return UpstreamShape.of(find(folder).config(read_config(folder), folder), folder.name)


@pytest.fixture(scope="session")
def tokenizer(folder: Path, shape: UpstreamShape) -> PublishedTokenizer:
    diffusion = shape.diffusion
    return PublishedTokenizer(folder, end=diffusion.end_token_id, mask=diffusion.mask_token_id)


@pytest.fixture
def opened(shape: UpstreamShape, tokenizer: PublishedTokenizer) -> Iterator[Open]:
    """Opens an engine that asks whoever a handler plays."""
    with ExitStack() as stack:

        def start(handler: Handler, **more: Any) -> UpstreamEngine:
            url = stack.enter_context(serving(handler))
            engine = UpstreamEngine(
                Upstream(url, more.pop("model", None), more.pop("token", None)), shape, tokenizer, (), **more
            )
            stack.callback(engine.close)
            return engine

        yield start
