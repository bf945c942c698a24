"""Where the peers are asked: down a file, behind others."""

from __future__ import annotations

import pytest
from tests.bench.measure import count

from calomel.bench.peers import Moment, moments_going_down
from calomel.report.heldout import HeldoutFile

FUNCTION = '''def total_of_{number}(values: list[int]) -> int:
    """The sum of values, {number} times."""
    result = 0
    for value in values:
        result += value * {number}
    return result


'''
CONTEXT = 3000


@pytest.fixture
def sources() -> tuple[HeldoutFile, ...]:
    return tuple(
        HeldoutFile(f"package{number // 2}", f"file{number}.{ending}", language, text(number))
        for language, ending in (("python", "py"), ("go", "go"))
        for number in range(6)
    )


def text(number: int) -> str:
    return "".join(FUNCTION.format(number=number * 100 + each) for each in range(12))


def moments(sources: tuple[HeldoutFile, ...], seed: int = 1) -> list[Moment]:
    return moments_going_down(sources, count, context=CONTEXT, places=4, moments=5, seed=seed)


def test_holes_go_down_files_of_every_language_alike(sources: tuple[HeldoutFile, ...]) -> None:
    found = moments(sources)
    assert len(found) == 20
    assert [moment.hole.language for moment in found[::5]] == ["go", "python", "go", "python"]
    assert found == moments(sources)
    assert found != moments(sources, seed=2)
    for first in range(0, 20, 5):
        place = found[first : first + 5]
        assert len({moment.place for moment in place}) == 1
        lengths = [len(moment.hole.prefix) for moment in place]
        assert lengths == sorted(set(lengths))
        for moment in place:
            hole = moment.hole
            assert "\n" not in hole.answer
            assert hole.prefix + hole.answer + hole.suffix in {file.text for file in sources}


def test_what_stands_in_front_is_the_same_all_the_way_down_and_fits(sources: tuple[HeldoutFile, ...]) -> None:
    found = moments(sources)
    for first in range(0, 20, 5):
        place = found[first : first + 5]
        related = place[0].related
        assert all(moment.related == related for moment in place)
        assert place[0].hole.path not in {excerpt.path for excerpt in related}
        whole = sum(count(excerpt.text) for excerpt in related) + count(place[0].hole.prefix)
        assert CONTEXT / 2 < whole < CONTEXT


def test_places_are_of_packages_in_turns_and_files_of_the_own_one_stand_nearest(
    sources: tuple[HeldoutFile, ...],
) -> None:
    found = moments(sources)
    for language in ("python", "go"):
        places = {moment.place.split(":")[0] for moment in found if moment.hole.language == language}
        assert len(places) == 2
    package = {file.path: file.package for file in sources}
    for moment in found:
        assert package[moment.related[-1].path] == moment.place.split(":")[0]


def test_a_keystroke_earlier_lacks_a_character(sources: tuple[HeldoutFile, ...]) -> None:
    moment = moments(sources)[0]
    assert moment.earlier.parts.prefix == moment.parts.prefix[:-1]
    assert moment.earlier.parts.related == moment.parts.related
