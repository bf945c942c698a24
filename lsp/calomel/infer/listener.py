"""Who listens at an address of this machine: another user may have taken the port that a model's server has left.

Servers of other makers can prove nothing, but the system knows whose program has the other end of a connection. The
user's own programs and root's can read the user's files anyway. A service's account (Ollama's) is taken for what the
user meant the first time, as SSH takes a host's key; any other user's program, and any change, the user must confirm.
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from calomel.storage import SecretFileError, read_regular, read_secret, write_whole

_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
# A machine with so many connections has a million lines of them.
_MOST_BYTES: Final = 64 * 1024 * 1024
_LISTENS: Final = "0A"
# Accounts of services: of packages, and those that systemd makes up (systemd.io/UIDS-GIDS).
_SYSTEM: Final = (range(1, 1000), range(61_184, 65_520))
_LINE: Final = re.compile(r"(\S+) (\d{1,10})(?: .*)?")

Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Listener:
    """A program of another user at an address to which text was to be sent.

    Attributes:
        place: `host:port`.
        uid: of its user.
        before: the user whose program was there before; None if the user never confirmed one.
    """

    place: str
    uid: int
    before: int | None = None

    @property
    def message(self) -> str:
        """What is told to the user."""
        was = "" if self.before is None else f", before it was {user_name(self.before)}'s"
        return f"the program at {self.place} belongs to another user of this machine ({user_name(self.uid)}{was})"

    @property
    def advice(self) -> str:
        """What to do if that is right."""
        return f"if that is right, write `{self.place} {self.uid}` into {known_path()}"


def user_name(uid: int) -> str:
    """The name of a user of this machine, or the number."""
    try:
        return str(import_module("pwd").getpwuid(uid).pw_name)
    except (ImportError, KeyError):
        return str(uid)


def stranger(server: Place, client: Place, *, remember: bool) -> Listener | None:
    """The program at the other end of a connection, if the user has to confirm it first. Blocks for moments.

    Args:
        server: address and port of the other end.
        client: of this end.
        remember: note a service's account for later.
    """
    uid = owner(server, client)
    if uid is None or not hasattr(os, "geteuid"):
        return None  # the system does not tell: SECURITY.md says where
    place = f"[{server[0]}]:{server[1]}" if ":" in server[0] else f"{server[0]}:{server[1]}"
    before = _known().get(place)
    service = before is None and any(uid in accounts for accounts in _SYSTEM)
    if uid not in {os.geteuid(), 0, before} and not service:
        return Listener(place, uid, before)
    if remember and before is None:
        confirm(place, uid)
    return None


def known_path() -> Path:
    """The file of confirmed servers: a line `host:port uid` for each."""
    import platformdirs

    return platformdirs.user_state_path("calomel", appauthor=False) / "known_servers"


def confirm(place: str, uid: int) -> None:
    """Note whose program the user means at an address. A state folder that cannot be written costs a question."""
    path, known = known_path(), {**_known(), place: uid}
    text = "".join(f"{each} {number} {user_name(number)}\n" for each, number in known.items())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, text, mode=0o600)
    except OSError:
        pass


def _known() -> dict[str, int]:
    """The confirmed servers; those of a file that others could write to, or that is damaged, are confirmed again."""
    try:
        text = read_secret(known_path(), "the file of known servers")
    except (FileNotFoundError, SecretFileError):
        return {}
    matches = (_LINE.fullmatch(line.strip()) for line in text.splitlines())
    return {match[1]: int(match[2]) for match in matches if match is not None}


def owner(server: Place, client: Place) -> int | None:
    """The user id of the program that has the other end of a connection within this machine; None where unknown."""
    ends = _address(server[0]), _address(client[0])
    if not ends[0].is_loopback and ends[0] != ends[1]:
        return None  # another machine, whose port a program here may have, too
    listening: int | None = None
    for local, port, remote, remote_port, state, uid, inode in _sockets():
        if port != server[1]:
            continue
        # Until it is accepted, a connection is nobody's; the one who listens will accept it.
        if (local, remote, remote_port) == (*ends, client[1]) and inode:
            return uid
        if state == _LISTENS and (local == ends[0] or (local.is_unspecified and listening is None)):
            listening = uid
    return listening


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _sockets() -> Iterator[tuple[_Address, int, _Address, int, str, int, int]]:
    """Local address and port, those of the other end, state, user and inode of each TCP socket (proc_net_tcp.txt)."""
    for table in _TABLES:
        try:
            lines = read_regular(table, _MOST_BYTES).decode("ascii", "replace").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            try:
                local, remote = _place(fields[1]), _place(fields[2])
                yield *local, *remote, fields[3], int(fields[7]), int(fields[9])
            except (IndexError, ValueError):
                continue


def _place(text: str) -> tuple[_Address, int]:
    """The kernel's spelling: words of 32 bits in the machine's order."""
    digits, _, port = text.partition(":")
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    packed = b"".join(word.to_bytes(4, sys.byteorder) for word in words)
    return _address(packed), int(port, 16)


def _address(value: str | bytes) -> _Address:
    """An address; an IPv4 one in the form of IPv6 as the former."""
    address = ipaddress.ip_address(value)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return address if mapped is None else mapped
