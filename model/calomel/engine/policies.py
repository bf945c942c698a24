"""Reveal policies: which masked positions of a canvas are fixed after a step.

Each policy is a function of the probabilities of the tokens that were chosen for the masked positions, from left to
right. It returns the indices of those that are revealed: at least one of any, so that every step makes progress.

Left-to-right decoding reveals nothing; what it drafts ahead comes from a `PromptLookup`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from calomel.engine.errors import InvalidRequestError

# How far ahead a guess is searched once the answer has left it: a replaced name or a dropped argument.
_REACH: Final = 24
# If this many tokens in a row occurred before, what followed them is worth drafting; longer runs are tried first. After
# a shorter run less is right: each run gets this share of the draft length.
_RUNS: Final = {4: 1.0, 3: 0.5, 2: 0.2}


class RevealPolicy(Protocol):
    """Chooses the positions that a step fixes."""

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """The indices of those that are revealed."""
        ...


@dataclass(frozen=True, slots=True)
class Threshold:
    """Reveal every position whose confidence reaches `probability`, or the best one (Fast-dLLM, arXiv 2505.22618)."""

    probability: float = 0.9

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """See `RevealPolicy`."""
        return [at for at, each in enumerate(confidences) if each >= self.probability] or best(confidences, 1)


@dataclass(frozen=True, slots=True)
class Fixed:
    """Reveal the `count` most confident positions of every step."""

    count: int = 1

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """See `RevealPolicy`."""
        return best(confidences, self.count)


@dataclass(frozen=True, slots=True)
class Prefix:
    """Reveal the first masked position, and those after it up to the first with a confidence below `probability`.

    From left to right, as many at once as the model is confident of: the order of adaptive parallel decoding (arXiv
    2506.00413), without its second model.

    Attributes:
        probability: required of each position after the first.
        ahead: how many tokens, copied from after an earlier occurrence of the last ones, the causal mode verifies
            first; what is revealed then joins the answer at once. 0 for neither.
    """

    probability: float = 0.9
    ahead: int = 0

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """See `RevealPolicy`."""
        unsure = (at for at, each in enumerate(confidences) if at and not each >= self.probability)
        return range(next(unsure, len(confidences)))


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Reveal every position with a confidence above `probability`; if they are fewer than `count`, the `count` best."""

    count: int
    probability: float

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """See `RevealPolicy`."""
        above = [at for at, each in enumerate(confidences) if each > self.probability]
        return above if len(above) >= self.count else best(confidences, self.count)


@dataclass(frozen=True, slots=True)
class Joint:
    """Reveal positions above `probability`, or the best one; change revealed tokens above `edit`.

    A canvas that is whole is read again until a step changes nothing, at most `after` times: the joint threshold of
    LLaDA2.1 (arXiv 2602.08676), which edits tokens besides revealing masks. A `Threshold`, as in LLaDA2.0, is the same
    without edits. With a constraint, nothing revealed is changed.
    """

    probability: float = 0.95
    edit: float = 0.9
    after: int = 16

    def __call__(self, confidences: Sequence[float]) -> Sequence[int]:
        """See `RevealPolicy`."""
        return AtLeast(1, self.probability)(confidences)


@dataclass(frozen=True, slots=True)
class Paced:
    """Reveal a number of positions that depends on the step: spread evenly, so that a canvas takes `steps` steps.

    Attributes:
        steps: per canvas; None for one position a step.
        probability: positions above it are revealed too, and the positions of a block are shared out (SDAR's
            `low_confidence_dynamic`); None to share out those that were masked when the canvas began
            (Stable-DiffCoder).
    """

    steps: int | None = None
    probability: float | None = None

    def at(self, step: int, masked: int, block: int) -> RevealPolicy:
        """The policy of step `step`, from 0, for a canvas that began with `masked` masked positions."""
        positions = masked if self.probability is None or block == 1 else block
        steps = self.steps or max(1, positions)
        # A step that would reveal nothing is skipped: the published loops go to the next one.
        count = max(1, positions // steps + (step < positions % steps))
        return Fixed(count) if self.probability is None else AtLeast(count, self.probability)


def best(confidences: Sequence[float], count: int) -> list[int]:
    """The indices of the `count` highest; of equal ones the first."""
    return sorted(range(len(confidences)), key=lambda at: -confidences[at])[:count]


@dataclass(frozen=True, slots=True)
class LeftToRight:
    """The causal mode decides every token.

    Attributes:
        ahead: how many tokens, copied from after an earlier occurrence of the last ones, are verified at a time.
    """

    ahead: int = 0


def parse_policy(text: str) -> RevealPolicy | Paced | LeftToRight:  # noqa: PLR0911  (a table)
    """Read `name:parameter`.

    `left_to_right:10`, `prefix:0.9/10`, `threshold:0.9`, `fixed:1`. Those of
    published block diffusion models: `low_confidence:4` (steps of a canvas), `low_confidence_dynamic:0.85/4`
    (probability and steps) and, for LLaDA2.1, `joint:0.95/0.9/16` (probability of a reveal, of a change, and steps
    after the last reveal).

    Raises:
        InvalidRequestError: the policy is unknown, or its parameter is not a number in its range.
    """
    name, _, parameter = text.partition(":")
    first, _, rest = parameter.partition("/")
    match name:
        case "left_to_right":
            return LeftToRight(_count(text, parameter) if parameter else 0)
        case "threshold":
            return Threshold(_probability(text, parameter, 0.9))
        case "prefix":
            return Prefix(_probability(text, first, 0.9), _count(text, rest) if rest else 0)
        case "fixed":
            return Fixed(_count(text, parameter or "1"))
        case "low_confidence":
            return Paced(_count(text, parameter) if parameter else None)
        case "low_confidence_dynamic":
            return Paced(_count(text, rest) if rest else None, _probability(text, first, 0.85))
        case "joint":
            edit, _, after = rest.partition("/")
            most = _count(text, after) if after else 16
            return Joint(_probability(text, first, 0.95), _probability(text, edit, 0.9), most)
        case _:
            raise InvalidRequestError(
                f"unknown policy {text!r}; known: threshold:P, prefix:P/AHEAD, fixed:K, "
                "low_confidence:STEPS, low_confidence_dynamic:P/STEPS, joint:P/EDIT/STEPS and left_to_right:AHEAD"
            )


def _count(text: str, parameter: str) -> int:
    count = parse_number(text, parameter, 1.0, low=1.0)
    if not count.is_integer():
        raise InvalidRequestError(f"policy {text!r}: {parameter} is not a whole number")
    return int(count)


def _probability(text: str, parameter: str, default: float) -> float:
    return parse_number(text, parameter, default, high=1.0)


def parse_number(text: str, parameter: str, default: float, *, low: float = 0.0, high: float = math.inf) -> float:
    """The number that the policy `text` has as its parameter; raises InvalidRequestError if it is out of range."""
    if not parameter:
        return default
    try:
        value = float(parameter)
    except ValueError as error:
        raise InvalidRequestError(f"policy {text!r}: {parameter!r} is not a number") from error
    if not math.isfinite(value) or not low <= value <= high:
        raise InvalidRequestError(f"policy {text!r}: {parameter} is not a finite number between {low} and {high}")
    return value


class PromptLookup:
    """Where in a guess the answer is: which tokens come next, also after the answer has left it and comes back.

    If there is no guess, or it does not help, the draft is what followed the last tokens at an earlier occurrence in
    the context or the answer (prompt lookup decoding, github.com/apoorvumang/prompt-lookup-decoding). The causal mode
    decides every token; a wrong guess costs rows of a forward, and nothing else.

    Args:
        guess: what the answer is probably made of, in order.
        context: comes before the answer.
        most: how many tokens are copied from an earlier occurrence at a time.
    """

    def __init__(self, guess: Sequence[int] = (), context: Sequence[int] = (), *, most: int = 0) -> None:
        self._guess = tuple(guess)
        self._most = most
        # As bytes, which are searched for a run of tokens faster than a list.
        self._text = bytearray(array("i", context if most else ()))
        self._copied = False  # whether the last draft was not part of the guess
        self._sure = 0  # the answer agrees with the guess up to here
        self._next = 0  # the next draft begins here
        self._astray = 0  # tokens in a row that the guess did not predict
        self._last = -1

    def ahead(self, room: int) -> list[int]:
        """The tokens that are worth verifying now, at most `room`; none while the answer does not follow the guess."""
        guessed = list(self._guess[self._next : self._next + max(0, room)]) if self._next >= 0 else []
        self._copied = not guessed
        return guessed or self._copy(min(self._most, room))

    def found(self, tokens: Sequence[int]) -> None:
        """Take in the tokens that were decided: a beginning of the draft, and one more."""
        if self._most:
            self._text += array("i", tokens)
        for part in ([token] for token in tokens) if self._copied else [tokens] if tokens else []:
            self._follow(part)

    def _copy(self, most: int) -> list[int]:
        """At most `most` of the tokens that followed the last ones at their previous occurrence."""
        text, width = self._text, array("i").itemsize
        for run, share in _RUNS.items() if most > 0 else ():
            size, count = run * width, math.ceil(share * most)
            if len(text) <= size:
                continue
            at = len(text) - size
            while (at := text.rfind(text[-size:], 0, at + size - 1)) >= 0:
                if not at % width:
                    return array("i", bytes(text[at + size : at + size + count * width])).tolist()
        return []

    def _follow(self, tokens: Sequence[int]) -> None:
        agreed, own = len(tokens) - 1, tokens[-1]
        if agreed:
            self._sure = self._next + agreed
            self._astray, self._last = 0, tokens[-2]
        self._astray += 1
        self._next = self._behind(own)
        self._last = own

    def _behind(self, own: int) -> int:
        """Where the guess continues after a token that it did not predict; -1 if that is unknown.

        Nothing is settled before the next tokens agree, so that a token which matches by chance loses nothing.
        """
        stop = min(len(self._guess), self._sure + _REACH)
        places = [at for at in range(self._sure, stop) if self._guess[at] == own]
        pairs = [at for at in places if at and self._guess[at - 1] == self._last]
        if places:
            return (pairs or places)[0] + 1
        # After the first one, a single replaced token is likeliest.
        return self._sure + 1 if self._astray == 1 else -1


def agreement(draft: Sequence[int], predicted: Sequence[int], *, ends: Container[int], room: int) -> int:
    """How many of the `predicted` tokens are fixed.

    Args:
        draft: the drafted tokens, without an end token.
        predicted: the causal mode's tokens for the same positions and the one after them, each predicted from the
            drafted tokens before it.
        ends: nothing is fixed after one of these tokens.
        room: at most this many are fixed.

    Returns:
        The length of the agreeing prefix plus one, for the causal mode's own token after it, within `room`.
    """
    for position, token in enumerate(predicted[:room]):
        if token in ends or position >= len(draft) or draft[position] != token:
            return position + 1
    return min(room, len(predicted))
