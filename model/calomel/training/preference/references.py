"""What the weights said of every answer before the first step: computed once, so that no second model is in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from calomel.training.preference.preference import AlignmentError


@dataclass(frozen=True, slots=True)
class Reference:
    """Scores of a question's A answers, see `Scores`, under the masks of one pass."""

    canvas: tuple[float, ...]
    causal: tuple[float, ...]


class References:
    """References in a file of JSON lines, each written as soon as it is known: an interrupted run goes on.

    A line names the answers that it is about; the first one says which weights and which settings it is for.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        """Read what is there. Raises AlignmentError when it was made with other weights or settings."""
        self._path = path
        self._known: dict[tuple[str, int], Reference] = {}
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"fingerprint": fingerprint}) + "\n", encoding="utf-8")
            return
        first, *lines = path.read_text(encoding="utf-8").split("\n")
        if json.loads(first)["fingerprint"] != fingerprint:
            raise AlignmentError(f"{path} belongs to other weights or settings: choose another --out, or delete it")
        whole = first + "\n"
        # The last line may have been cut by a crash.
        for line in lines[:-1]:
            entry = json.loads(line)
            self._known[entry["answers"], entry["number"]] = Reference(tuple(entry["canvas"]), tuple(entry["causal"]))
            whole += line + "\n"
        if lines and lines[-1]:
            path.write_text(whole, encoding="utf-8")

    def get(self, keys: Sequence[str], number: int) -> Reference | None:
        """Of the answers with these keys, in pass `number`."""
        return self._known.get((" ".join(keys), number))

    def add(self, keys: Sequence[str], number: int, reference: Reference) -> None:
        """Remember one, and write it down."""
        name = " ".join(keys)
        self._known[name, number] = reference
        entry = {
            "answers": name,
            "number": number,
            "canvas": list(reference.canvas),
            "causal": list(reference.causal),
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
