from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, os, socket
from calomel.server.run import OfflineError, refuse_connections, turn_off_libraries
turn_off_libraries()
refuse_connections()
with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
    socket.create_connection(("127.0.0.1", port)).close()
    socket.create_connection(("localhost", port)).close()
attempts = {
    "connect": lambda: socket.create_connection(("192.0.2.1", 80), timeout=1),
    "connect6": lambda: socket.create_connection(("2001:db8::1", 80), timeout=1),
    "connect_ex": lambda: socket.socket().connect_ex(("192.0.2.1", 80)),
    "name": lambda: socket.getaddrinfo("example.com", 80),
    "old name": lambda: socket.gethostbyname("example.com"),
    "datagram": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
    "loop": lambda: asyncio.run(asyncio.open_connection("192.0.2.1", 80)),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except OfflineError:
        continue
    raise SystemExit(f"{name} reached out")
assert os.environ["HF_HUB_OFFLINE"] == "1"
"""


def test_nothing_in_the_process_reaches_another_machine() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
