"""The same weights in llama.cpp, through `llama-cpp-python`: token ids in, greedy token ids out."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from calomel.bench.peers.peer import Ends, PeerUnavailableError, common_beginning


class LlamaCppPeer:
    """llama.cpp over a GGUF file.

    Args:
        file: as `gguf_file.write_gguf` writes it.
        positions: of prompt and answer together, at most.
        threads: of the processor.
        settings: what to say of the file in the report.

    Raises:
        PeerUnavailableError: llama-cpp-python is not installed, or can not open the file.
    """

    name = "llamacpp"

    def __init__(self, file: Path, *, positions: int, threads: int, settings: str) -> None:
        try:
            library = import_module("llama_cpp")
        except ImportError as error:
            raise PeerUnavailableError("llama-cpp-python is not installed: pip install -e '.[peers]'") from error
        try:
            self._model: Any = library.Llama(
                str(file), n_ctx=positions, n_threads=threads, n_threads_batch=threads, verbose=False
            )
        except (OSError, ValueError, AssertionError) as error:
            raise PeerUnavailableError(f"llama.cpp can not open the weights: {error}") from error
        self._seen: list[int] = []
        self.read = 0
        self.settings = f"llama-cpp-python {library.__version__}, {settings}, {threads} threads"

    def decode(self, prompt: Sequence[int], most: int, end: int, ends: Ends) -> list[int]:
        """At most `most` greedy tokens behind `prompt`, see `Peer`.

        The steps of the library's own `generate`, without its comparison of the prompts in Python.
        """
        kept = min(common_beginning(self._seen, prompt), len(prompt) - 1)
        # `eval` forgets what stands behind this position.
        self._model.n_tokens = kept
        fresh = list(prompt[kept:])
        self.read = len(fresh)
        self._seen = [*prompt[:kept]]
        answer: list[int] = []
        while True:
            self._model.eval(fresh)
            self._seen += fresh
            token = int(self._model.sample(temp=0.0, top_k=1, repeat_penalty=1.0))
            if token == end:
                return answer
            answer.append(token)
            if len(answer) == most or ends(answer):
                return answer
            fresh = [token]

    def close(self) -> None:
        """Free the model."""
        self._model.close()
