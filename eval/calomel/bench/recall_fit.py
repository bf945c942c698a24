"""`calomel calibrate --recall`: fits how likely recalled texts are right beside one model's own answers.

Holes are cut from files that the model was not trained on; each is answered by the model alone and, where there is
one, by a recalled text. Three logistic regressions with an L2 penalty say how likely each is right (`recall.json`).
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from calomel.bench.holes import make_holes
from calomel.bench.model import OpenModel, open_model
from calomel.infer.completer import FillRequest
from calomel.infer.recall import (
    DRAFT,
    OWN,
    PRIOR,
    CopyScorer,
    draft_features,
    own_features,
    prior_features,
    probability,
    recall,
)
from calomel.prompts.parts import PromptParts
from calomel.report.heldout import BenchDataError, HeldoutFile, Hole, read_heldout
from calomel.report.running import Progress
from calomel.selectivity.fit import TooFewError, solve

HOLES_PER_KIND: Final = 240
# At most this many characters per file, and this many files per package.
LARGEST, FILES_PER_PACKAGE = 40_000, 20
_SEED = 1
# With fewer samples of either class a fit proves nothing.
FEWEST: Final = 20


@dataclass(frozen=True, slots=True)
class RecallSample:
    """What is known of a hole.

    Attributes:
        own: features of the model's own answer; `own_right` whether it is right.
        prior: features of the recalled text without the model; None where no recalled text fits.
        draft: the same, with the model's scores.
        draft_right: whether the recalled text is right.
    """

    own: dict[str, float]
    own_right: bool
    prior: dict[str, float] | None = None
    draft: dict[str, float] | None = None
    draft_right: bool = False


@dataclass(frozen=True, slots=True)
class RecallFit:
    """The weights, and the samples they were fitted to."""

    worth: CopyScorer
    samples: tuple[RecallSample, ...]


def fit_recall(
    documents: Path,
    model: Path | None = None,
    *,
    device: str = "cpu",
    holes_per_kind: int | None = None,
    over: Callable[[], bool] = lambda: False,
) -> RecallFit:
    """Ask `model` (None: the shipped one) about holes in `documents`, files as a corpus has them, and fit.

    No more is asked once it is `over`.

    Raises:
        BenchDataError: documents are absent, damaged or held out.
        TooFewError: they are too few to fit.
        CheckpointError, TokenizerError: the checkpoint is not one of Calomel's own.
    """
    files = _to_fit_on(documents)
    progress = Progress()
    with open_model(model, device=device) as opened:
        holes = make_holes(files, opened.measure, per_kind=holes_per_kind or HOLES_PER_KIND, seed=_SEED)
        progress.phase("gaps", len(holes))
        samples = []
        for hole in holes:
            samples.append(_sample(opened, hole))
            progress.step()
            if over():
                break
    return RecallFit(fit(samples), tuple(samples))


def fit(samples: Sequence[RecallSample]) -> CopyScorer:
    """Fits the weights for recalled texts to `samples`.

    Where a recalled text is more likely right than any of the model's own answers was, the model need not be asked.

    Raises:
        TooFewError: there are too few right or wrong ones.
    """
    drafts = [one for one in samples if one.draft is not None and one.prior is not None]
    right = [one.draft_right for one in drafts]
    own = logistic([one.own for one in samples], [one.own_right for one in samples], OWN, "own answers")
    return CopyScorer(
        prior=logistic([one.prior or {} for one in drafts], right, PRIOR, "recalled texts"),
        draft=logistic([one.draft or {} for one in drafts], right, DRAFT, "recalled texts"),
        own=own,
        sure=max(probability(own, one.own) for one in samples),
    )


def logistic(
    rows: Sequence[Mapping[str, float]], right: Sequence[bool], names: Sequence[str], what: str
) -> dict[str, float]:
    """The weights of `names`; the bias is not penalized. Raises TooFewError with too few of either class."""
    count = sum(right)
    if min(count, len(right) - count) < FEWEST:
        raise TooFewError(
            f"{count} of {len(right)} {what} are right; a fit needs {FEWEST} right and {FEWEST} wrong ones"
        )
    inputs, truth = np.asarray([[row[name] for name in names] for row in rows]), np.asarray(right, dtype=np.float64)
    penalty = np.asarray([1e-6 if name == "bias" else 1.0 for name in names])
    solved = solve(inputs, truth, penalty, np.zeros(len(rows)))
    return dict(zip(names, map(float, solved), strict=True))


def _sample(model: OpenModel, hole: Hole) -> RecallSample:
    """`model`'s own answer to `hole`, and its scores for the recalled text."""
    # Asked as the doors ask, except without recall.
    asked = FillRequest(
        "fill",
        PromptParts(path=hole.path, prefix=hole.prefix, suffix=hole.suffix),
        max_tokens=hole.max_tokens,
        recall=False,
    )
    fill = model.filler.fill(asked)
    own = own_features(fill.result.log_probs, fill.result.end_log_prob)
    bare = RecallSample(own, _is_right(fill.text, hole))
    found = recall(hole.prefix, hole.suffix)
    tokens = 0 if found is None else len(model.tokenizer.encode(found.text))
    if found is None or not 1 <= tokens <= hole.max_tokens:
        return bare
    judging, owed = model.filler.judging(asked, found.text)
    judged = model.engine.submit(judging).result()
    return replace(
        bare,
        prior=prior_features(found, tokens),
        draft=draft_features(found, judged.log_probs[owed:], judged.end_log_prob),
        draft_right=_is_right(found.text, hole),
    )


def _is_right(text: str, hole: Hole) -> bool:
    """Whether `text` is what was in the hole, ignoring trailing white space."""
    return text.rstrip() == hole.answer.rstrip()


def _to_fit_on(documents: Path) -> tuple[HeldoutFile, ...]:
    files = read_heldout(documents)
    shared = sorted({file.package for file in files} & {file.package for file in read_heldout()})
    if shared:
        raise BenchDataError(f"{documents} has held-out packages ({', '.join(shared)}); leave them out")
    packages: defaultdict[str, list[HeldoutFile]] = defaultdict(list)
    for file in files:
        if len(file.text) <= LARGEST:
            packages[file.package].append(file)
    rng = random.Random(_SEED)  # noqa: S311 - seeded, not secret
    return tuple(file for found in packages.values() for file in rng.sample(found, min(len(found), FILES_PER_PACKAGE)))
