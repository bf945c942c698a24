"""What the engine did for what was accepted: forwards that were not context alone, and rows of all forwards."""

from __future__ import annotations

from calomel.bench.stats import Interval
from calomel.replay.metrics.latency import was_asked
from calomel.replay.metrics.offers import Offers, seen
from calomel.replay.opportunity import Opportunity
from calomel.replay.resampling import Resampling


def steps(offers: Offers, resampling: Resampling) -> dict[str, Interval | None]:
    """Steps and rows a question, and by what was accepted; nothing where nobody counted."""
    rest = [0.0] * len(offers.theirs)
    asked = offers.flags([was_asked(item) for item in offers.ours])
    done = [*(float(item.steps) for item in offers.ours), *rest]
    rows = [*(float(item.rows) for item in offers.ours), *rest]
    characters = [*(_characters(item) for item in offers.ours), *rest]
    tokens = [*(_tokens(item) for item in offers.ours), *rest]
    if not sum(done):
        return dict.fromkeys(NAMES)
    return {
        "steps_per_question": resampling.ratio(done, asked),
        "rows_per_question": resampling.ratio(rows, asked),
        "steps_per_accepted_token": resampling.ratio(done, tokens),
        "steps_per_accepted_character": resampling.ratio(done, characters),
        "rows_per_accepted_character": resampling.ratio(rows, characters),
    }


NAMES = (
    "steps_per_question",
    "rows_per_question",
    "steps_per_accepted_token",
    "steps_per_accepted_character",
    "rows_per_accepted_character",
)


def _characters(item: Opportunity) -> float:
    found = seen(item)
    return 0.0 if found is None else float(found.accepted_characters)


def _tokens(item: Opportunity) -> float:
    """Of what was accepted; of a part of a suggestion, its share of the tokens."""
    found = seen(item)
    if found is None or not found.accepted_characters:
        return 0.0
    signals = found.signals
    whole = max(1.0, signals.get("characters_inserted", 0.0), float(found.accepted_characters))
    return max(1.0, signals.get("tokens", 0.0)) * found.accepted_characters / whole
