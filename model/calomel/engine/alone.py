"""What goes wrong for one request ends that one alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calomel.engine.errors import EngineError, RequestFailedError
from calomel.engine.worker import Work


@contextmanager
def alone(job: Work) -> Iterator[None]:
    """End `job`, and it alone, by what is raised within."""
    try:
        yield
    except EngineError as error:
        job.handle.settle(error)
    except Exception as error:  # noqa: BLE001  (whatever it is, the other requests go on)
        failure = RequestFailedError(f"serving the request failed: {error!r}")
        failure.__cause__ = error
        job.handle.settle(failure)
