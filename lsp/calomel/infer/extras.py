"""Which parts of Calomel are installed, and the command that installs another into this environment."""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from typing import Final

from calomel.storage.machine import has_nvidia

# The packages of the extra `engine`.
ENGINE: Final = ("torch", "tokenizers", "safetensors", "llguidance")
# On Linux, the package index has torch for NVIDIA's cards, which is 5 GB; this index has it for processors.
_SMALL_TORCH: Final = "https://download.pytorch.org/whl/cpu"
NO_MODEL: Final = "no model is installed"
# How to have one that is somewhere else, in an editor's settings.
SET_UPSTREAM: Final = "set backend.upstream to the address of a server that has one"


def has_engine() -> bool:
    """Whether Calomel's own engine is installed, in which nano runs. Imports nothing."""
    return all(find_spec(name) is not None for name in ENGINE)


def installing(words: str) -> str:
    """The command that installs packages into this environment."""
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install {words}" if find_spec("pip") else f"uv pip install --python {python} {words}"


def installing_engine() -> str:
    """The command that installs the engine: without a card, with the torch that is made for processors."""
    small = sys.platform == "linux" and not has_nvidia()
    return installing("'calomel[engine]'" + (f" --extra-index-url {_SMALL_TORCH}" if small else ""))


def without_engine(server: str) -> str:
    """What to do where a model needs the engine and there is none; `server` says how to name a server instead."""
    llama = installing("'calomel[llama]'")
    return f"run `{installing_engine()}` for nano, or `{llama}` for GGUF files in llama.cpp, or {server}"


def without_model() -> str:
    """The same, for a command that asks the user's choice."""
    return (
        f"run `{installing_engine()}` for nano, or `calomel models use` with a GGUF file or a server: "
        "`calomel models recommend` names one for this machine"
    )
