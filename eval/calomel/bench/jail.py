"""Runs one untrusted program: started by `sandbox` as `python -I jail.py`, never imported by anything.

Reads `{"program", "token", ...limits}` as JSON from stdin and writes one JSON line to stdout:
`{"token": ..., "confinement": ..., "error": null | "..."}`. The token appears only when the program ran to its end, so
that a program which exits early with status 0 has not passed. Order: own user, network, process and mount namespaces
where the system permits, file system read-only but for the working folder, no capabilities, resource limits, program.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from typing import Any

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC = (
    0x00020000,
    0x10000000,
    0x20000000,
    0x40000000,
    0x08000000,
)
MS_NOSUID_NODEV, MS_PRIVATE_REC = 2 | 4, 0x4000 | (1 << 18)
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS = 1, 4, 38
CAPABILITY_VERSION_3 = 0x20080522
NOBODY = 65534


def main() -> None:
    """Confine this process, run the program in a child, report."""
    order = json.load(sys.stdin)
    # Only this copy of stdout reports; the program's own output goes nowhere.
    report = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        _leave_root(libc)
    confinement = _enter_namespaces(libc, order["folder_bytes"])
    child = os.fork()
    if child:
        # The end of a namespace's first process ends all others in it, and is over when they are.
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _drop_capabilities(libc)
    if confinement == "shim":
        _block_sockets()
    _limit(order)
    error = _execute(order["program"])
    token = order["token"] if error is None else None
    os.write(report, json.dumps({"token": token, "confinement": confinement, "error": error}).encode() + b"\n")
    os._exit(0)


def _execute(program: str) -> str | None:
    """Run the program; None when it ended by itself, else the name of what it raised."""
    try:
        exec(compile(program, "program.py", "exec"), {"__name__": "__main__"})  # noqa: S102 - the purpose of this file
    except BaseException as error:  # noqa: BLE001 - SystemExit is a failure too
        return type(error).__name__
    return None


def _leave_root(libc: ctypes.CDLL) -> None:
    """Become nobody: the kernel exempts root from the limit on processes."""
    # The standard library may lie below a folder that only root can enter; an open folder stays reachable.
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - keeps start-up short
    opened = f"/proc/self/fd/{os.open(library, os.O_PATH | os.O_DIRECTORY)}"
    sys.path[:] = [opened, f"{opened}/lib-dynload"]
    sys.path_importer_cache.clear()
    for module in tuple(sys.modules.values()):
        if hasattr(module, "__path__"):
            module.__path__ = [entry.replace(library, opened, 1) for entry in module.__path__]
    os.chown(".", NOBODY, NOBODY)
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    # Changing the user closed /proc/self to this process; the mapping below is written there.
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def _enter_namespaces(libc: ctypes.CDLL, folder_bytes: int) -> str:
    """Leave network, other processes and writable files behind, as far as the system permits; says how far.

    "namespaces": all of it; "network": the network and the processes only; "shim": nothing.
    """
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC) != 0:
        return "shim"
    try:
        for name, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123 - keeps start-up short
                file.write(line)
        folder = os.getcwd()  # noqa: PTH109 - keeps start-up short
        attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
        size = f"size={folder_bytes},mode=700,uid={user},gid={group}".encode()
        flags = ctypes.c_ulong
        mounted = (
            libc.mount(None, b"/", None, flags(MS_PRIVATE_REC), None)
            or libc.syscall(
                ctypes.c_long(SYS_MOUNT_SETATTR),
                ctypes.c_int(AT_FDCWD),
                b"/",
                ctypes.c_uint(AT_RECURSIVE),
                ctypes.byref(attributes),
                ctypes.c_size_t(ctypes.sizeof(attributes)),
            )
            or libc.mount(b"tmpfs", folder.encode(), b"tmpfs", flags(MS_NOSUID_NODEV), size)
        ) == 0
        os.chdir(folder)
    except OSError:
        return "network"
    return "namespaces" if mounted else "network"


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up what the new user namespace granted, the right to undo its mounts included."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    libc.capset(ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def _block_sockets() -> None:
    """Without namespaces: make Python's sockets raise. A program that calls libc itself could get around this."""
    import _socket
    import socket

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("no network")

    for module in (socket, _socket):
        for name in ("socket", "SocketType", "socketpair", "create_connection", "fromfd", "getaddrinfo"):
            if hasattr(module, name):
                setattr(module, name, refuse)


def _limit(order: dict[str, Any]) -> None:
    """Set the resource limits, hard ones: nothing inside can raise them."""
    for kind, value in (
        (resource.RLIMIT_AS, order["memory_bytes"]),
        (resource.RLIMIT_CPU, order["cpu_seconds"]),
        (resource.RLIMIT_FSIZE, order["file_bytes"]),
        (resource.RLIMIT_NPROC, order["processes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))


if __name__ == "__main__":
    main()
