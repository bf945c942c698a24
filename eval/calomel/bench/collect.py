"""Answers every hole with every contender, resumably, in an order that lets slow drift of the machine cancel."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from hashlib import sha256

from calomel.bench.answer import Answerer, Attempt, Contender, matches
from calomel.bench.holes import Hole
from calomel.bench.humaneval import Task
from calomel.bench.journal import Journal
from calomel.bench.load import LoadWatch
from calomel.bench.progress import Progress
from calomel.bench.sandbox import Limits, Verdict, run_program

SANDBOX_WORKERS = 2


@dataclass(frozen=True, slots=True)
class Outcome:
    """A judged attempt.

    Attributes:
        cold_milliseconds: what encoding the context from nothing took, measured once for all contenders.
        others: cores that other processes used around that time.
        passed: whether the program ran through its tests; None for holes without any.
    """

    hole: Hole
    contender: str
    attempt: Attempt
    correct: bool
    cold_milliseconds: float
    others: float
    passed: bool | None = None


def collect(
    holes: Sequence[Hole],
    contenders: Sequence[Contender],
    answerer: Answerer,
    journal: Journal,
    progress: Progress,
    *,
    deadline: float | None = None,
    load: LoadWatch | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> list[Outcome]:
    """Outcomes hole by hole, all contenders of a hole or none; ends early at `deadline` (of `clock`).

    Contenders take turns at being first. What the journal knows is not asked again and costs no time of the deadline.
    """
    watch = load if load is not None else LoadWatch()
    found: list[Outcome] = []
    progress.phase("answers", len(holes))
    for turn, hole in enumerate(holes):
        records = [journal.get(f"{hole.key}|{contender.name}") for contender in contenders]
        if all(record is not None for record in records):
            found += [
                _outcome(hole, contender, record)
                for contender, record in zip(contenders, records, strict=True)
                if record is not None
            ]
            progress.step("from an earlier run")
            continue
        if deadline is not None and clock() > deadline:
            continue
        cold = answerer.prime(hole)
        shift = turn % len(contenders)
        attempts: dict[str, Attempt] = {}
        for contender in (*contenders[shift:], *contenders[:shift]):
            attempts[contender.name] = answerer.attempt(hole, contender)
        others = watch.others()
        for contender in contenders:
            record = {"attempt": asdict(attempts[contender.name]), "cold_milliseconds": cold, "others": others}
            journal.put(f"{hole.key}|{contender.name}", record)
            found.append(_outcome(hole, contender, record))
        progress.step()
    return found


def run_tests(
    outcomes: Sequence[Outcome],
    tasks: Mapping[str, Task],
    journal: Journal,
    progress: Progress,
    *,
    limits: Limits | None = None,
    run: Callable[[str, Limits | None], Verdict] = run_program,
) -> tuple[list[Outcome], str]:
    """Run the program of every outcome whose hole has a task (by hole key); also how the programs were confined.

    Equal programs run once. This comes after all answers, so that no program runs while an answer is timed.
    """
    programs = {
        index: tasks[outcome.hole.key].program(outcome.attempt.text)
        for index, outcome in enumerate(outcomes)
        if outcome.hole.key in tasks
    }
    keys = {
        program: f"program:{sha256(program.encode('utf-8', 'replace')).hexdigest()}" for program in programs.values()
    }
    todo = [program for program, key in keys.items() if journal.get(key) is None]
    progress.phase("programs", len(todo))
    with ThreadPoolExecutor(SANDBOX_WORKERS) as pool:
        for program, verdict in zip(todo, pool.map(lambda text: run(text, limits), todo), strict=True):
            journal.put(keys[program], asdict(verdict))
            progress.step()
    verdicts = {index: journal.get(keys[program]) or {} for index, program in programs.items()}
    judged = [
        replace(outcome, passed=bool(verdicts[index].get("passed"))) if index in verdicts else outcome
        for index, outcome in enumerate(outcomes)
    ]
    seen = {str(verdict.get("confinement")) for verdict in verdicts.values()} - {"unknown"}
    # The weakest that was seen; a program that was killed could not say.
    confinement = next((name for name in ("shim", "network", "namespaces") if name in seen), "none run")
    return judged, confinement


def _outcome(hole: Hole, contender: Contender, record: Mapping[str, object]) -> Outcome:
    raw = record["attempt"]
    if not isinstance(raw, dict):
        raise TypeError("the journal holds an attempt that is no object; delete it")
    attempt = Attempt(**raw)
    cold, others = record["cold_milliseconds"], record["others"]
    return Outcome(hole, contender.name, attempt, matches(hole, attempt.text), float(str(cold)), float(str(others)))
