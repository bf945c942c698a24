"""Replays logs on a Ray cluster, which the extra `cluster` installs."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from calomel.replay.events import ReplayLog
from calomel.replay.opportunity import LogResult
from calomel.replay.options import ReplayOptions
from calomel.replay.runs import OpenModel, ReplayError, Report, Task, replay_log


def computed_on_ray(
    todo: Sequence[Task], options: ReplayOptions, jobs: int, report: Report, open_model: OpenModel
) -> Iterator[tuple[int, LogResult]]:
    """The results by number, as they come. Raises ReplayError when Ray is not installed."""
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError as error:
        raise ReplayError("--ray needs Ray, which is not installed here: pip install 'calomel[cluster]'") from error
    return _rows(ray, todo, options, jobs, report, open_model)


def _rows(
    ray: Any, todo: Sequence[Task], options: ReplayOptions, jobs: int, report: Report, open_model: OpenModel
) -> Iterator[tuple[int, LogResult]]:
    began = not ray.is_initialized()
    if began:
        ray.init(log_to_driver=False, include_dashboard=False)
    try:
        # One row a block: a log is a long piece of work. The logs themselves lie in the cluster's object store.
        rows = ray.data.from_items([{"number": number} for number, _, _ in todo], override_num_blocks=len(todo))
        logs = {number: ray.put(log) for number, _, log in todo}
        played = rows.map(
            Replayer, fn_constructor_args=(options, open_model, logs, ray.get), concurrency=min(jobs, len(todo))
        )
        sizes = {number: len(log.events) for number, _, log in todo}
        for row in played.iter_rows():
            number = int(row["number"])
            report(number, sizes[number], sizes[number])
            yield number, LogResult.from_json(json.loads(row["result"]))
    finally:
        if began:
            ray.shutdown()


class Replayer:
    """An actor with its own model."""

    def __init__(
        self, options: ReplayOptions, open_model: OpenModel, logs: Mapping[int, Any], fetch: Callable[[Any], ReplayLog]
    ) -> None:
        """`logs` are references by number, which `fetch` follows."""
        self._options = options
        self._logs = logs
        self._fetch = fetch
        self._completer = open_model(options)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Replay the log of a row."""
        number = int(row["number"])
        result = replay_log(self._fetch(self._logs[number]), self._completer, self._options)
        return {"number": number, "result": json.dumps(result.to_json())}
