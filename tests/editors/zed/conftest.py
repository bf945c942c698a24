"""The server's fixtures: an app with a model that answers as it is told."""

from __future__ import annotations

from tests.server.conftest import (  # noqa: F401 (fixtures)
    _no_outcomes_outside,
    _no_settings_from_outside,
    _torch,
    client,
    filler,
    make_app,
    open_client,
)
