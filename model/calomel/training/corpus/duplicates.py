"""Drops files seen before, exactly or nearly, by the lines that they share with kept files."""

import hashlib
from functools import lru_cache

# A file is a near-duplicate when more than this share of its telling lines was kept before.
NEAR_SHARE = 0.6
# Lines that say something: long enough, and no comment (licence headers repeat everywhere).
MIN_LINE_CHARS = 12
MIN_LINES = 5
_COMMENT = ("#", "//", "/*", "*", "<!--")


# The same file is asked about, and then added, in a row.
@lru_cache(maxsize=2)
def telling_lines(text: str) -> tuple[int, ...]:
    """Return a 64-bit hash of each line that could tell one file from another."""
    stripped = (line.strip() for line in text.splitlines())
    return tuple(_hash(line) for line in stripped if len(line) >= MIN_LINE_CHARS and not line.startswith(_COMMENT))


def _hash(line: str) -> int:
    # hash() is salted by process; the corpus must come out the same each time.
    digest = hashlib.blake2b(" ".join(line.split()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


class SeenText:
    """The text kept so far; asks of each new file how much of it is not new."""

    def __init__(self, near_share: float = NEAR_SHARE) -> None:
        """Start empty. `near_share` in 0..1: the share of known lines that makes a duplicate."""
        self._near_share = near_share
        self._texts: set[bytes] = set()
        self._lines: set[int] = set()

    def fault(self, text: str) -> str | None:
        """Return `exact duplicate` or `near duplicate` for known text, or None for new."""
        if _fingerprint(text) in self._texts:
            return "exact duplicate"
        lines = telling_lines(text)
        if len(lines) < MIN_LINES:
            return None
        known = sum(line in self._lines for line in lines)
        return "near duplicate" if known > self._near_share * len(lines) else None

    def add(self, text: str) -> None:
        """Remember a file that was kept."""
        self._texts.add(_fingerprint(text))
        self._lines.update(telling_lines(text))


@lru_cache(maxsize=2)
def _fingerprint(text: str) -> bytes:
    return hashlib.sha256(" ".join(text.split()).encode()).digest()
