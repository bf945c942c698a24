"""GET /: the status page and playground, one file without anything from elsewhere.

A browser asks its user for the token (as a password) and sends it along with what the page fetches from this server.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib.resources import files

from starlette.responses import Response

from calomel.server.access import protected_router

_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)

router = protected_router()


@router.get("/", response_class=Response, responses={200: {"content": {"text/html": {}}}})
async def page() -> Response:
    """The page."""
    content = content_of_page()
    return Response(content, media_type="text/html; charset=utf-8", headers=headers_for(content))


@functools.cache
def content_of_page() -> bytes:
    """The file, read once."""
    return files("calomel.server").joinpath("page", "index.html").read_bytes()


@functools.lru_cache(maxsize=1)
def headers_for(content: bytes) -> dict[str, str]:
    """Headers that let the page run its own script, talk to this server, and nothing else."""
    policy = {
        "default-src": "'none'",
        "script-src": _hashes(_SCRIPT, content),
        "style-src": _hashes(_STYLE, content),
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    return {
        "content-security-policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        # A page of another version would not fit the server behind it.
        "cache-control": "no-store",
    }


def _hashes(pattern: re.Pattern[bytes], content: bytes) -> str:
    """A CSP source expression for each inline block."""
    digests = (hashlib.sha256(block).digest() for block in pattern.findall(content))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
