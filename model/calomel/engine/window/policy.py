"""The policies of window mode: the published algorithms by name, and our own ones that need no causal context."""

from __future__ import annotations

import math

from calomel.engine.errors import PolicyUnavailableError, UnknownPolicyError
from calomel.engine.reveal import parse_policy
from calomel.engine.window.algorithms import Algorithm, Confidence, LowConfidence, Origin, PathPlanning, Revealing


def parse_algorithm(text: str, alg_temp: float = 0.0) -> Algorithm:
    """Read `name:parameter`.

    `maskgit_plus:T`, `topk_margin:T` and `entropy:T` with the randomness T of the order (`alg_temp` when absent),
    `origin`, `p2`, `low_confidence`, `random`, or a reveal policy (`threshold:0.9`, `factor:1`, `entropy_bound:0.1`,
    `fixed:1`).

    Raises:
        UnknownPolicyError: there is no such policy, or its parameter is no number in its range.
        PolicyUnavailableError: the policy reads the context causally, which such a checkpoint never learned.
    """
    name, _, parameter = text.partition(":")
    match name:
        case "maskgit_plus" | "topk_margin" | "entropy":
            return Confidence(name, _temperature(text, parameter) if parameter else alg_temp)
        case "origin" | "p2" | "low_confidence" | "random" if parameter:
            raise UnknownPolicyError(f"policy {text!r}: {name} has no parameter")
        case "origin":
            return Origin()
        case "p2":
            return PathPlanning()
        case "low_confidence" | "random":
            return LowConfidence(by_chance=name == "random")
        case _:
            policy = parse_policy(text)
    if policy.verified or policy.reveal is None:
        raise PolicyUnavailableError(
            f"policy {text!r} needs a checkpoint that was trained causally on its context; this one was not"
        )
    return Revealing(policy.reveal)


def _temperature(text: str, parameter: str) -> float:
    try:
        value = float(parameter)
    except ValueError as error:
        raise UnknownPolicyError(f"policy {text!r}: {parameter!r} is not a number") from error
    if not math.isfinite(value) or value < 0:
        raise UnknownPolicyError(f"policy {text!r}: {parameter} is not a finite number of at least 0")
    return value
