from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from calomel.server.logs import escaped, log_to, say
from calomel.server.middleware import log_failure

_log = logging.getLogger("calomel.server")
HOSTILE = "ok\n2026-01-01 INFO forged \x1b[31mred\x1b[0m\r\x00\u2028 é"


def fail() -> None:
    raise ValueError("def secret_of_the_user():")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("calomel", "uvicorn", "uvicorn.error")]
    before = [(logger, logger.handlers, logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, handlers, level, propagate in before:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)


def test_nobody_can_forge_a_line_or_paint_a_terminal() -> None:
    out = io.StringIO()
    log_to(out, "info", "text")
    _log.info("path %s", HOSTILE)

    [line] = out.getvalue().splitlines()
    assert line.endswith(r"INFO calomel.server: path ok\n2026-01-01 INFO forged \x1b[31mred\x1b[0m\r\x00\u2028 é")


def test_a_line_of_json_is_one_object() -> None:
    out = io.StringIO()
    log_to(out, "info", "json")
    _log.info("path %s", HOSTILE)

    assert out.getvalue().count("\n") == 1
    assert out.getvalue().isascii()
    said = json.loads(out.getvalue())
    assert (said["level"], said["logger"], said["message"]) == ("info", "calomel.server", f"path {HOSTILE}")


@pytest.mark.parametrize("form", ["text", "json"])
def test_of_an_error_the_log_gets_type_and_places_and_no_message(form: str) -> None:
    out = io.StringIO()
    log_to(out, "debug", form)  # type: ignore[arg-type]
    try:
        fail()
    except ValueError as error:
        log_failure(error)
        _log.debug("where it failed", exc_info=error)

    assert "secret_of_the_user" not in out.getvalue()
    assert "unexpected ValueError" in out.getvalue()
    assert "test_logs.py" in out.getvalue()


def test_other_handlers_do_not_get_the_message_either(caplog: pytest.LogCaptureFixture) -> None:
    try:
        fail()
    except ValueError as error:
        log_failure(error)
    assert "secret_of_the_user" not in "".join(record.getMessage() + str(record.exc_info) for record in caplog.records)


def test_a_level_hides_what_is_below_it() -> None:
    out = io.StringIO()
    log_to(out, "warning", "text")
    _log.info("hidden")
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert not out.getvalue()


def test_a_full_disk_stops_nothing() -> None:
    class Full(io.StringIO):
        def write(self, _: str, /) -> int:
            raise OSError(28, "No space left on device")

    log_to(Full(), "info", "text")
    _log.info("lost")
    say(Full(), "lost as well")


def test_printable_text_is_left_as_it_is() -> None:
    assert escaped("añb → c") == "añb → c"
