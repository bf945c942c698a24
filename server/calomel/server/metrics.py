"""What the server counts, in the names of Prometheus. Labels are few and fixed: never a path, a model id or a text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

# Seconds: from an answer out of the cache to one that nobody waits for.
_SECONDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
_STEPS_PER_TOKEN: Final = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class Spent:
    """What one answer took.

    Attributes:
        prompt_tokens: of the context, cached ones included.
        cached_tokens: of them, those that the prefix cache had.
        completion_tokens: of the answer.
        steps: denoising steps.
        seconds: from the request to the answer.
        finish: `stop`, `length` or `deadline`.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0
    seconds: float = 0.0
    finish: str = "stop"


class Metrics:
    """The counters of one server, in a registry of its own. Safe to use from any thread."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "calomel_requests", "Requests by route and status", ("route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "calomel_request_seconds",
            "From the request to its answer",
            ("route",),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.running = Gauge("calomel_requests_running", "Requests that have a place", registry=self.registry)
        self.refused = Counter(
            "calomel_requests_refused", "Requests refused before any work, by code", ("code",), registry=self.registry
        )
        self.prompt_tokens = Counter("calomel_prompt_tokens", "Tokens of contexts", registry=self.registry)
        self.cached_tokens = Counter("calomel_cached_tokens", "Of them, served from the cache", registry=self.registry)
        self.completion_tokens = Counter("calomel_completion_tokens", "Tokens of answers", registry=self.registry)
        self.steps = Counter("calomel_denoising_steps", "Denoising steps", registry=self.registry)
        self.steps_per_token = Histogram(
            "calomel_steps_per_token",
            "Denoising steps by tokens of an answer",
            registry=self.registry,
            buckets=_STEPS_PER_TOKEN,
        )
        self.verdicts = Counter(
            "calomel_suggestions", "Edits shown, and suppressed by reason", ("verdict",), registry=self.registry
        )

    def answered(self, spent: Spent) -> None:
        """Count the work behind one answer."""
        self.prompt_tokens.inc(spent.prompt_tokens)
        self.cached_tokens.inc(spent.cached_tokens)
        self.completion_tokens.inc(spent.completion_tokens)
        self.steps.inc(spent.steps)
        if spent.completion_tokens:
            self.steps_per_token.observe(spent.steps / spent.completion_tokens)

    @staticmethod
    def by_label(counter: Counter) -> dict[str, int]:
        """The counts of a counter that has one label, by its value."""
        samples = (sample for family in counter.collect() for sample in family.samples if _is_total(sample.name))
        return {next(iter(sample.labels.values())): int(sample.value) for sample in samples}

    def judged(self, verdict: str) -> None:
        """Count a suggestion: `shown`, or the name of the reason why it was not."""
        self.verdicts.labels(verdict).inc()


def counted(counter: Counter) -> int:
    """The count of a counter that has no labels."""
    return int(sum(sample.value for family in counter.collect() for sample in family.samples if _is_total(sample.name)))


def _is_total(name: str) -> bool:
    return name.endswith("_total")
