"""A simulated person types through the real language server, and is told what appeared."""

from __future__ import annotations

from typing import Any

import pytest

from calomel.bench import use


@pytest.mark.slow
def test_what_a_person_sees_while_typing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(use, "TYPED", 60)
    monkeypatch.setattr(use, "QUICK_FILES", 1)

    report = use.run_use(quick=True)
    flat: dict[str, Any] = dict(report.flat)

    assert report.bench == "bench use calomel nano quick"
    assert flat["characters"] == 60
    assert flat["pauses"] > 0
    assert flat["accepted"] <= flat["shown"] <= flat["pauses"]
    assert flat["shown_share"] == pytest.approx(flat["shown"] / flat["pauses"], abs=1e-3)
