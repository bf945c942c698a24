from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from calomel.cli.main import main
from calomel.suggest import in_process
from calomel.suggest.completer import Fill, FillRequest

if TYPE_CHECKING:
    from calomel.engine import Result


@dataclass
class FakeFiller:
    """Answers every request with the next of `answers`, then with the last one again."""

    answers: list[str]
    requests: list[FillRequest] = field(default_factory=list)
    opened: list[tuple[object, ...]] = field(default_factory=list)
    closed: bool = False

    def fill(self, request: FillRequest) -> Fill:
        self.requests.append(request)
        text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Fill(
            text=text,
            finish_reason="stop",
            confidence=0.75,
            prompt_tokens=20,
            completion_tokens=4,
            cached_tokens=8,
            steps=2,
            forwards=3,
            seconds=0.012,
            result=cast("Result", None),
        )

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def filler(monkeypatch: pytest.MonkeyPatch) -> FakeFiller:
    fake = FakeFiller(["a + b"])

    def open_filler(*options: object) -> FakeFiller:
        fake.opened.append(options)
        return fake

    monkeypatch.setattr(in_process, "open_filler", open_filler)
    return fake


@dataclass(frozen=True)
class Run:
    status: int
    out: str
    err: str


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Run]:
    """Runs the command line in this process."""

    def call(*arguments: object) -> Run:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Run(left.value.code if isinstance(left.value.code, int) else 0, printed.out, printed.err)

    return call


@pytest.fixture
def full_disk() -> Callable[[], AbstractContextManager[None]]:
    """As long as its context is open, writing stops in the middle: no file takes more than 64 bytes."""

    @contextmanager
    def fill() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return fill
