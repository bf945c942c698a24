"""Replayed questions, judged: what `calomel replay --samples FILE --prompts` wrote of texts at the cursor."""

from __future__ import annotations

import json
from collections.abc import Iterable

from calomel.bench.failures.hole_case import HoleCase
from calomel.bench.failures.hole_kinds import hole_kind, hole_kinds
from calomel.bench.failures.verdict import TAIL_CHARACTERS, Verdict, saved_characters
from calomel.bench.failures.words import place_of
from calomel.prompts.parts import PromptParts
from calomel.selectivity.sample import Sample
from calomel.suggest.wire import decode_request


def judge_samples(samples: Iterable[Sample]) -> tuple[list[Verdict], int]:
    """One verdict for each question whose right answer is known, and how many questions are left out.

    A question is right when one of its candidates was accepted; otherwise its first candidate with texts is judged.
    """
    questions: dict[str, list[Sample]] = {}
    for sample in samples:
        questions.setdefault(f"{sample.group}|{sample.question}|{sample.kind}", []).append(sample)
    found, left_out = [], 0
    for key, candidates in questions.items():
        known = [each for each in candidates if each.text is not None and each.wanted and each.request is not None]
        if not known:
            left_out += 1
            continue
        found.append(_judged(key, known[0], accepted=any(each.accepted for each in candidates)))
    return found, left_out


def _judged(key: str, sample: Sample, *, accepted: bool) -> Verdict:
    parts = decode_request(json.dumps(sample.request)).parts
    wanted, text = sample.wanted or "", sample.text or ""
    language = {"typescriptreact": "typescript", "javascriptreact": "javascript"}.get(sample.language, sample.language)
    case = HoleCase(language, parts.prefix, parts.suffix, wanted, text, _seen(parts))
    kind = None if accepted else hole_kind(case)
    return Verdict(
        key=key,
        source="replay",
        row=sample.kind,
        language=language,
        place=place_of(parts.prefix, language),
        kind=kind,
        also=() if accepted else tuple(each for each in hole_kinds(case) if each != kind),
        saved=saved_characters(wanted),
        tail=parts.prefix[-TAIL_CHARACTERS:],
        truth=wanted,
        answer=text,
    )


def _seen(parts: PromptParts) -> str:
    excerpts = [excerpt.text for excerpt in (*parts.related, *parts.far)]
    edits = [text for hunk in parts.edits for text in (hunk.before, hunk.after)]
    return "\n".join((*excerpts, *edits, parts.prefix, parts.suffix))
