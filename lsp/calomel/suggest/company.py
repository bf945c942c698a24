"""The other candidates of an answer: whether they say the same, and how much likelier they are."""

from __future__ import annotations

from dataclasses import dataclass

from calomel.suggest.completer import Candidate, CompleteAnswer


@dataclass(frozen=True, slots=True)
class Company:
    """Of one candidate.

    Attributes:
        agreeing: other candidates with the same text.
        rivals: other candidates with another text; silence is not counted.
        margin: nats by which it is likelier than the likeliest rival; None where that is not known.
    """

    agreeing: int = 0
    rivals: int = 0
    margin: float | None = None


def company_of(candidate: Candidate, answer: CompleteAnswer, as_it_is: str | None = None) -> Company:
    """The others of `answer`; `as_it_is` is the text that silence leaves."""
    others = [other for other in answer.candidates if other is not candidate and other.text not in ("", as_it_is)]
    rivals = [other for other in others if other.text != candidate.text]
    best = max((other.log_prob for other in rivals if other.log_prob is not None), default=None)
    margin = None if candidate.log_prob is None or best is None else candidate.log_prob - best
    return Company(len(others) - len(rivals), len(rivals), margin)
