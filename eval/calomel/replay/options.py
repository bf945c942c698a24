"""How a replay is done."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from calomel.suggest.completer import Kind
from calomel.workspace.preferences import Aggressiveness

Latency = Literal["measured"] | float


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What every log of a run has in common.

    Attributes:
        model: checkpoint folder; None for the shipped one.
        device: cpu, cuda or cuda:N.
        threads: of each engine.
        latency: seconds of every answer, or those that the answers really take.
        seed: of whatever is drawn.
        aggressiveness: of the gate.
        kinds: what is asked for; None for what the model was trained for.
        limit_minutes: of each log's time; None for all of it.
        samples: show nothing, and keep every candidate with what the person would have done about it.
        prompts: keep texts and prompts with the samples, too.
        speculate: the engine may guess second steps (see `calomel.engine.foresight`).
        debounce_seconds: after a keystroke; None for the suggester's own, learned from the rhythm of typing.
    """

    model: Path | None = None
    device: str = "cpu"
    threads: int | None = None
    latency: Latency = "measured"
    seed: int = 0
    aggressiveness: Aggressiveness = "balanced"
    kinds: tuple[Kind, ...] | None = None
    limit_minutes: float | None = None
    debounce_seconds: float | None = None
    samples: bool = False
    prompts: bool = False
    speculate: bool = True

    @property
    def fixed_latency(self) -> float | None:
        """Seconds; None when latency is measured."""
        return None if self.latency == "measured" else float(self.latency)
