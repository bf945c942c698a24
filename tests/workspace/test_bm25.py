"""The search over segments against BM25 written out."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from calomel.workspace.analysis import analyse
from calomel.workspace.bm25 import K1, B, search
from calomel.workspace.segment import Segment, SourceFile, build_segment
from calomel.workspace.words import count_numbers, words_in

WORDS = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "theta", "kappa", "sigma", "omega"]


def segment_of(texts: list[str]) -> Segment:
    files = [(SourceFile(f"/w/{n}.txt", f"{n}.txt"), analyse(text, f"/w/{n}.txt")) for n, text in enumerate(texts)]
    return build_segment(files)


def naive(texts: list[str], query: dict[int, int]) -> dict[int, float]:
    documents = [Counter(count_numbers(words_in(text))) for text in texts]
    lengths = [sum(document.values()) for document in documents]
    mean = sum(lengths) / len(lengths)
    scores: dict[int, float] = {}
    for term, weight in query.items():
        having = sum(term in document for document in documents)
        if not having:
            continue
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for number, document in enumerate(documents):
            count = document[term]
            if count:
                part = count * (K1 + 1) / (count + K1 * (1 - B + B * lengths[number] / mean))
                scores[number] = scores.get(number, 0.0) + weight * rarity * part
    return scores


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=12), min_size=2, max_size=12),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4),
)
def test_the_best_chunks_are_those_of_the_formula(texts: list[list[str]], asked: list[str]) -> None:
    whole = [" ".join(words) + "\n" for words in texts]
    segment = segment_of(whole)
    query = count_numbers(words_in(" ".join(asked)))
    expected = naive(whole, query)
    found = {int(hit.segment.arrays["chunk_file"][hit.chunk]): hit.score for hit in search([segment], query, 20)}
    assert found.keys() == expected.keys()
    for number, score in expected.items():
        assert math.isclose(found[number], score, rel_tol=1e-3)
