"""Copilot's account and its editor's introduction, answered so that its clients go on: nobody signs in here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

# Clients take any name as a sign that they may ask for suggestions.
SIGNED_IN: Final = {"status": "OK", "user": "calomel"}


def check_status(_: Mapping[str, Any]) -> dict[str, str]:
    """`checkStatus`, `signInConfirm`."""
    return dict(SIGNED_IN)


def sign_in(_: Mapping[str, Any]) -> dict[str, str]:
    """`signIn`, `signInInitiate`."""
    return {"status": "AlreadySignedIn", "user": SIGNED_IN["user"]}


def sign_out(_: Mapping[str, Any]) -> dict[str, str]:
    """`signOut`: there is nothing to leave."""
    return {"status": "OK"}


def ok(_: Mapping[str, Any]) -> str:
    """`setEditorInfo`, `notifyShown` and the like."""
    return "OK"


def nothing(_: Mapping[str, Any]) -> None:
    """Notifications that ask for nothing."""
