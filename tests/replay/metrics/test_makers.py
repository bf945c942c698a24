from __future__ import annotations

from dataclasses import replace

from tests.replay.made import opportunity, shown

from calomel.replay.metrics.makers import makers
from calomel.replay.opportunity import Opportunity


def test_each_maker_is_counted_where_it_proposed_and_where_it_was_chosen() -> None:
    rename = replace(shown("accepted"), maker="rename")
    canvas = replace(shown("rejected"), maker="canvas")
    items = [
        replace(opportunity(1, rename), makers=("canvas", "rename")),
        replace(opportunity(2, canvas, silence="low_confidence"), makers=("canvas",)),
        replace(opportunity(3, None, silence="no_change"), makers=("rename",)),
        opportunity(4, shown("accepted")),
    ]
    assert makers(items) == {
        "canvas": {"proposed": 2, "chosen": 1, "shown": 0, "accepted": 0, "partly": 0},
        "rename": {"proposed": 2, "chosen": 1, "shown": 1, "accepted": 1, "partly": 0},
    }


def test_makers_survive_a_journal_and_older_ones_have_none() -> None:
    item = replace(opportunity(1, replace(shown(), maker="rename")), makers=("canvas", "rename"))
    assert Opportunity.from_json(item.to_json()) == item
    old = item.to_json()
    del old["makers"], old["candidate"]["maker"]
    assert Opportunity.from_json(old).makers == ()
