"""What is under test: one checkpoint folder with the ways of decoding that are compared, or a real server.

A server is a process of its own with private folders, a free port and a token.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import httpx

from calomel.infer import runtime_file
from calomel.infer.completer import DEFAULT_CONTEXT, FillRequest
from calomel.infer.filler import DEFAULT_MAX_STEPS, DEFAULT_POLICY, Filler
from calomel.infer.in_process import open_filler
from calomel.infer.runtime_file import RuntimeFileError
from calomel.prompts.parts import PromptParts
from calomel.report.heldout import Hole
from calomel.report.result import weights_hash

if TYPE_CHECKING:
    from calomel.engine import Engine
    from calomel.infer.upstream.completer import UpstreamCompleter
    from calomel.prompts.tokenizer import TextTokenizer

# A slower answer counts as none.
PATIENCE: Final = 60.0
_READY_SECONDS, _END_SECONDS = 120.0, 30.0
_TAIL: Final = 2000
OK: Final = 200


class ServedError(Exception):
    """The server did not start; the message has its last words."""


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its URL, its token, its process, and its output so far."""

    url: str
    token: str
    pid: int
    log: Path

    def client(self, number: int | None = None) -> httpx.AsyncClient:
        """A client of the bench; with a number, from an address of its own, so that the server tells clients apart."""
        transport = httpx.AsyncHTTPTransport(local_address=None if number is None else source_address(self.url, number))
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.AsyncClient(base_url=self.url, headers=headers, transport=transport, timeout=PATIENCE)


def source_address(url: str, number: int) -> str | None:
    """A loopback address for client `number`: Linux routes all of 127.0.0.0/8 to this machine.

    None where the server is elsewhere.
    """
    if sys.platform != "linux" or not httpx.URL(url).host.startswith("127."):
        return None
    return str(ipaddress.IPv4Address("127.1.0.1") + number)


@contextmanager
def served(
    model: Path | None = None,
    device: str = "cpu",
    threads: int | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[Served]:
    """A real `calomel serve` with private folders, a free port and a token of its own; stopped when the context ends.

    Raises ServedError when it does not become ready in time.
    """
    token = secrets.token_urlsafe(24)
    with tempfile.TemporaryDirectory(prefix="calomel-bench-") as made:
        folder = Path(made)
        record, log = folder / "run" / "server.json", folder / "log"
        command = [sys.executable, "-m", "calomel.cli", "serve", "--port", "0", "--runtime-file", str(record)]
        command += ["--device", device, *(["--model", str(model)] if model else [])]
        command += [*(["--threads", str(threads)] if threads else []), *arguments]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CALOMEL_")}
        with log.open("wb") as words:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                env={**kept, **private_folders(folder), "CALOMEL_TOKEN": token},
                stdout=words,
                stderr=subprocess.STDOUT,
            )
        try:
            yield Served(_url(process, record, log), token, process.pid, log)
        finally:
            process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def private_folders(folder: Path) -> dict[str, str]:
    """Environment variables for private runtime, state, cache and configuration folders, created in `folder`."""
    found = {name: folder / name.lower() for name in _FOLDERS}
    for path in found.values():
        path.mkdir(mode=0o700)
    return {name: str(path) for name, path in found.items()}


_FOLDERS: Final = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


def _url(process: subprocess.Popen[bytes], record: Path, log: Path) -> str:
    """The server's address, as soon as its model is loaded."""
    until = time.monotonic() + _READY_SECONDS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(RuntimeFileError, httpx.HTTPError):
            found = runtime_file.read(record)
            if found is not None and httpx.get(f"{found.url}/health", timeout=5).status_code == OK:
                return found.url
        time.sleep(0.05)
    raise ServedError(f"the server did not become ready: {log.read_text(errors='replace')[-_TAIL:].strip()}")


LEFT_TO_RIGHT: Final = "left_to_right"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchOptions:
    """What is measured, and on what.

    Attributes:
        model: checkpoint folder; None is the one that ships.
        device, threads: of the engine.
        policy: reveal policy (also `POLICY@STEPS`); None is the shipped default.
        seed: of what is drawn.
        quick: a seeded subset within three minutes.
        heldout: held-out files; None is the committed ones.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    policy: str | None = None
    seed: int = 1
    quick: bool = False
    heldout: Path | None = None


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to decode: a policy, None for the default, and its bound on steps, None for the default.

    `as_doors`: as every door asks: from the beginning of the cursor's word, or with a recalled text where that is
    more likely right. Policies are compared on the bare prompt.
    """

    name: str
    policy: str | None = None
    max_steps: int | None = None
    as_doors: bool = False

    @classmethod
    def parse(cls, text: str) -> Contender:
        """Read `POLICY` or `POLICY@STEPS`, as in `threshold:0.9@8`.

        Raises:
            ValueError: the steps are not a positive number.
        """
        policy, mark, steps = text.partition("@")
        if mark and not (steps.isdigit() and int(steps) > 0):
            raise ValueError(f"{text!r}: @ must be followed by a positive number of steps")
        return cls(text, None if policy == "default" else policy, int(steps) if mark else None)


BASELINE: Final = Contender(LEFT_TO_RIGHT, LEFT_TO_RIGHT)


def in_turns(contenders: Sequence[_T], turn: int) -> tuple[_T, ...]:
    """All of them, rotated by turn, so that each is first equally often."""
    shift = turn % len(contenders)
    return (*contenders[shift:], *contenders[:shift])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One answer to one hole.

    Attributes:
        text: what would be inserted.
        kept_tokens: tokens of `text`, plus one where the answer ended by an end token that counted.
        forwards: all forwards after prefill.
        milliseconds: the whole call: rendering and tokenizing the prompt, prefill, denoising, decoding.
        prefill_milliseconds: the part of these spent encoding the context.
        prompt_tokens, cached_tokens: of the prompt, and those of them that were in the prefix cache.
    """

    text: str
    kept_tokens: int
    forwards: int
    milliseconds: float
    prefill_milliseconds: float = 0.0
    prompt_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class OpenModel:
    """A loaded checkpoint."""

    folder: Path
    weights_hash: str
    engine: Engine
    tokenizer: TextTokenizer
    filler: Filler
    clock: Callable[[], float] = time.perf_counter

    @property
    def verifiable(self) -> bool:
        """Whether left-to-right decoding of these weights means anything."""
        return self.engine.config.diffusion.verifiable

    @property
    def decoding(self) -> tuple[str, int | None]:
        """Policy and steps of a request that names none."""
        own = self.filler.generation
        return (DEFAULT_POLICY, DEFAULT_MAX_STEPS) if own is None else (own.policy, own.max_steps)

    def measure(self, text: str) -> int:
        """The number of tokens in `text`."""
        return len(self.tokenizer.encode(text))

    def attempt(self, hole: Hole, contender: Contender, max_context: int = DEFAULT_CONTEXT) -> Attempt:
        """Fill `hole` greedily after at most `max_context` tokens; raises the engine's errors."""
        began = self.clock()
        fill = self.filler.fill(_asked(hole, contender, max_context))
        milliseconds = (self.clock() - began) * 1e3
        return Attempt(
            text=fill.text,
            kept_tokens=fill.completion_tokens + (fill.result.end_log_prob is not None),
            forwards=fill.forwards,
            milliseconds=milliseconds,
            prefill_milliseconds=fill.result.prefill_seconds * 1e3,
            prompt_tokens=fill.prompt_tokens,
            cached_tokens=fill.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class UpstreamModel:
    """The model behind another server, which decodes in its own way: its steps are not known here."""

    completer: UpstreamCompleter
    weights_hash: str
    tokenizer: TextTokenizer
    verifiable: bool = False
    decoding: tuple[str, None] = ("the server's", None)

    def measure(self, text: str) -> int:
        """The number of tokens in `text`, as the shipped model counts: holes are the same for every model."""
        return len(self.tokenizer.encode(text))

    def attempt(self, hole: Hole, contender: Contender, max_context: int = DEFAULT_CONTEXT) -> Attempt:
        """Fill `hole` greedily; raises UpstreamError."""
        began = time.perf_counter()
        fill = self.completer.fill(_asked(hole, contender, max_context))
        tokens, milliseconds = fill.completion_tokens, (time.perf_counter() - began) * 1e3
        return Attempt(fill.text, tokens, tokens, milliseconds, 0.0, fill.prompt_tokens, fill.cached_tokens)


def open_upstream(completer: UpstreamCompleter) -> UpstreamModel:
    """The model behind a server; raises UpstreamError if none answers."""
    from calomel.prompts.tokenizer import Tokenizer

    completer.look()
    tokenizer = Tokenizer.from_file(checkpoint_folder(None) / "tokenizer.json")
    return UpstreamModel(completer, completer.model.weights, tokenizer)


def _asked(hole: Hole, contender: Contender, max_context: int) -> FillRequest:
    return FillRequest(
        "fill",
        PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix),
        max_tokens=hole.max_tokens,
        policy=contender.policy,
        max_steps=contender.max_steps,
        max_context=max_context,
        recall=contender.as_doors,
        whole_word=contender.as_doors,
        fitted=contender.as_doors,
    )


def checkpoint_folder(folder: Path | None) -> Path:
    """`folder`, or that of the weights that ship with Calomel."""
    if folder is not None:
        return folder
    from calomel.weights import nano_path

    return nano_path()


@contextmanager
def open_model(
    folder: Path | None,
    *,
    device: str = "cpu",
    threads: int | None = None,
    quantize: Literal["int8"] | None = None,
) -> Iterator[OpenModel]:
    """Load a checkpoint of any family; closes it at the end.

    `quantize` is for weights in eight bits.

    Raises:
        CheckpointError: the folder does not hold a checkpoint, or one that is too large for this device.
    """
    place = checkpoint_folder(folder)
    filler = open_filler(place, device, threads, quantize=quantize)
    try:
        yield OpenModel(place, weights_hash(place), filler.engine, filler.tokenizer, filler)
    finally:
        filler.close()
