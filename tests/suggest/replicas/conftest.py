from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.suggest.replicas.here import HereLine

from calomel.families.configuration import read_config
from calomel.families.table import find
from calomel.suggest.filler import Filler
from calomel.suggest.in_process import open_filler
from calomel.suggest.replicas.engine import ReplicatedEngine
from calomel.weights import nano_path

Open = Callable[..., tuple[Filler, HereLine]]


@pytest.fixture(scope="session")
def single() -> Iterator[Filler]:
    """The shipped model, with one engine."""
    filler = open_filler(threads=1)
    yield filler
    filler.close()


@pytest.fixture(scope="session")
def engines() -> Iterator[list[Filler]]:
    fillers = [open_filler(threads=1) for _ in range(3)]
    yield fillers
    for filler in fillers:
        filler.close()


@pytest.fixture
def replicated(engines: list[Filler], single: Filler) -> Iterator[Open]:
    """Opens the shipped model with replicas of this process."""
    folder = nano_path()
    shape = find(folder).config(read_config(folder), folder)
    with ExitStack() as stack:

        def start(count: int = 2, **more: Any) -> tuple[Filler, HereLine]:
            line = HereLine(engines[:count])
            engine = ReplicatedEngine(line, shape, count, **more)
            stack.callback(engine.close)
            return Filler(engine, single.tokenizer), line

        yield start
