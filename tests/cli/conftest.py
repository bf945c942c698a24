from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from tests.families.published.layout import writers
from tests.suggest.made_outcome import an_outcome

from calomel.cli.main import main
from calomel.infer import in_process
from calomel.infer.completer import CompleteAnswer, CompleteRequest, Fill, FillRequest
from calomel.server.settings import NAMES
from calomel.suggest.offers import Outcome

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

    async def complete(self, request: CompleteRequest) -> CompleteAnswer:
        """An editor's questions: it has nothing to say."""
        return CompleteAnswer(())

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


Runner = Callable[..., Run]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
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

    resource = pytest.importorskip("resource", reason="no such limit on this system")

    @contextmanager
    def fill() -> Iterator[None]:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return fill


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder, and no setting from outside."""
    for name in (*NAMES, "config"):
        monkeypatch.delenv(f"CALOMEL_{name.upper()}", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("config", "state", "data", "cache"):
        monkeypatch.setenv(f"XDG_{name.upper()}_HOME", str(tmp_path / f".{name}"))
    for folder in (tmp_path / "run", tmp_path / "run" / "calomel"):
        folder.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path


def configured(home: Path, name: str, text: str = "") -> Path:
    """A file of the user's, below the folder of his configurations."""
    path = home / ".config" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def sdar(tmp_path: Path) -> Path:
    """A checkpoint of another maker's."""
    writers()["sdar"](tmp_path / "tiny")
    return tmp_path / "tiny"


def outcome(name: str, became: str = "shown", /, **changes: Any) -> Outcome:
    """What became of a suggestion of four characters."""
    own = {"reason": "", "model": "nano", "probability": 0.4, "length": 4, "accepted_length": 0, "text": "zero"}
    return an_outcome(id=name, outcome=became, **{**own, **changes})
