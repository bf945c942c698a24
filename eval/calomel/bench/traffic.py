"""What the clients of the soak do: ask in every way, leave in the middle, and send what no server should accept."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from calomel.bench.crowd import PATH
from calomel.bench.places import Place

EDIT_PATH: Final = "/v1/edit/completions"
_JSON: Final = "application/json"
_ANSWERED: Final = frozenset({200, 429, 503})
# How often each is done, of a hundred.
WEIGHTS: Final = {
    "fill": 40,
    "stream": 12,
    "canvas": 3,
    "edit": 10,
    "leave": 12,
    "leave_stream": 8,
    "bad": 10,
    "look": 5,
}


@dataclass(frozen=True, slots=True)
class Deed:
    """One thing that a client does.

    Attributes:
        kind: its name in the report.
        method: GET or POST.
        path: of the route.
        body: of the request.
        media_type: of the body.
        fine: statuses that are right.
        stays: seconds until the client hangs up; None when it waits for the whole answer.
    """

    kind: str
    path: str
    method: str = "POST"
    body: bytes = b""
    media_type: str = _JSON
    fine: frozenset[int] = _ANSWERED
    stays: float | None = None


class Traffic:
    """Deeds at random, seeded."""

    def __init__(self, places: tuple[Place, ...], seed: int) -> None:
        self._places = places
        self._random = random.Random(seed)  # noqa: S311 - seeded, not secret
        self._keys = 0

    def deed(self) -> Deed:
        """The next one."""
        kind = self._random.choices(tuple(WEIGHTS), tuple(WEIGHTS.values()))[0]
        return self._makers()[kind]()

    def _makers(self) -> dict[str, Callable[[], Deed]]:
        return {
            "fill": lambda: Deed("fill", PATH, body=self._fill()),
            "stream": lambda: Deed("stream", PATH, body=self._fill(stream=True)),
            "canvas": lambda: Deed("canvas", PATH, body=self._fill(stream=True, diffusing=True)),
            "edit": lambda: Deed("edit", EDIT_PATH, body=self._edit()),
            "leave": lambda: Deed("leave", PATH, body=self._fill(), stays=self._random.uniform(0, 0.3)),
            "leave_stream": lambda: Deed(
                "leave_stream", PATH, body=self._fill(stream=True), stays=self._random.uniform(0, 0.3)
            ),
            "bad": self._bad,
            "look": self._look,
        }

    def _fill(self, **more: object) -> bytes:
        self._keys += 1
        body = self._random.choice(self._places).request(self._keys)
        tokens = self._random.choice((8, 32, 64))
        return json.dumps({**body, "min_tokens": 0, "max_tokens": tokens, **more}).encode()

    def _edit(self) -> bytes:
        place = self._random.choice(self._places)
        before, after = place.prefix[-2000:], place.suffix[:1000]
        lines = place.typed.splitlines() or [""]
        content = (
            "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n\n"
            f"<|current_file_content|>\ncurrent_file_path: src/{self._random.randrange(9)}.py\n{before}\n"
            f"<|code_to_edit|>\n{lines[0]}<|cursor|>\n<|/code_to_edit|>\n{after}\n<|/current_file_content|>\n\n"
            "<|edit_diff_history|>\n--- a\n+++ a\n@@ -1,1 +1,1 @@\n-old_name = 1\n+new_name = 1\n"
            "<|/edit_diff_history|>\n"
        )
        return json.dumps({"model": "mercury-edit", "messages": [{"role": "user", "content": content}]}).encode()

    def _bad(self) -> Deed:
        deeds = (
            Deed("bad", PATH, body=b'{"model": "m", "prompt": ', fine=frozenset({400})),
            Deed("bad", PATH, body=b'{"model": "m", "prompt": 1}', fine=frozenset({400})),
            Deed("bad", PATH, body=b'{"model": "m", "prompt": "x", "max_tokens": -1}', fine=frozenset({400})),
            Deed("bad", PATH, body=b"prompt=x", media_type="application/x-www-form-urlencoded", fine=frozenset({415})),
            Deed("bad", PATH, body=b"x" * (5 * 1024 * 1024), fine=frozenset({413})),
            Deed("bad", EDIT_PATH, body=b'{"model": "m", "messages": []}', fine=frozenset({400})),
            Deed("bad", "/v1/nothing", method="GET", fine=frozenset({404})),
        )
        return self._random.choice(deeds)

    def _look(self) -> Deed:
        path = self._random.choice(("/metrics", "/v1/models", "/health", "/calomel/v1/status", "/"))
        return Deed("look", path, method="GET", fine=frozenset({200}))
