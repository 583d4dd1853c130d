"""A gateway on a Unix socket that only its owner (or one group) may open."""

import contextlib
import logging
import os
import shutil
import socket
import stat
import threading
from pathlib import Path

from steadytree._base.exceptions import MessageError
from steadytree.federated.framing import (
    LARGEST_QUESTION,
    Refusal,
    receive_frame,
    refusal,
    send_frame,
)
from steadytree.federated.gateway import Gateway

LONGEST_PATH = 100  # systems allow 104 to 108 bytes
MOST_CONNECTIONS = 8
PATIENCE = 30.0  # seconds to receive or to send a message
_LOG = logging.getLogger(__name__)


class GatewayServer:
    """Listens on a socket file and passes each message to the gateway.

    The socket has permissions 0600; or 0660 with a group, for a relay that runs as another user.
    """

    def __init__(self, gateway: Gateway, path: str | Path, group: str | None = None) -> None:
        self._gateway, self.path = gateway, Path(path)
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._stopping = threading.Event()
        self._listener = _listen(self.path, group)

    def serve(self) -> None:
        """Serve until `stop` is called; requests in progress are finished first."""
        _LOG.info("gateway of %s serves", self._gateway.holder.name)
        threads: list[threading.Thread] = []
        try:
            while not self._stopping.is_set():
                try:
                    connection, _ = self._listener.accept()
                except TimeoutError:
                    continue
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(threading.Thread(target=self._handle, args=(connection,)))
                threads[-1].start()
        finally:
            self._listener.close()
            for thread in threads:
                thread.join()
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
            _LOG.info("gateway of %s stopped", self._gateway.holder.name)

    def stop(self) -> None:
        """Make `serve` return; may be called from a signal handler."""
        self._stopping.set()

    def _handle(self, connection: socket.socket) -> None:
        # a caller that disconnects or sends half a message is ignored
        with connection, contextlib.suppress(OSError, MessageError):
            connection.settimeout(PATIENCE)
            if not self._free.acquire(blocking=False):
                send_frame(connection, refusal(Refusal.BUSY))
                return
            try:
                message = receive_frame(connection, LARGEST_QUESTION, PATIENCE)
                connection.settimeout(PATIENCE)
                send_frame(connection, self._gateway.reply(message))
            finally:
                self._free.release()


def _listen(path: Path, group: str | None) -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError("this system has no Unix sockets: use files (steadytree private answer).")
    if len(os.fsencode(path)) > LONGEST_PATH:
        raise ValueError(f"the socket's path may have at most {LONGEST_PATH} bytes: shorten it.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot create the socket {str(path)!r}: create its folder first.")
    _clear(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # so that nobody else can open it even for a moment
    try:
        listener.bind(str(path))
        if group is not None:
            _admit(path, group)
        listener.listen(MOST_CONNECTIONS)
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.settimeout(0.2)
    return listener


def _admit(path: Path, group: str) -> None:
    try:
        shutil.chown(path, group=group)
    except LookupError:
        raise ValueError(f"there is no group {group!r} on this machine.") from None
    path.chmod(0o660)


def _clear(path: Path) -> None:
    """Remove a socket that a killed gateway left behind, and nothing else."""
    if not path.exists():
        return
    if not stat.S_ISSOCK(path.stat().st_mode):
        raise ValueError(f"{str(path)!r} exists and is not a socket: name another.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(2.0)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except OSError:  # busy or not permitted: another gateway may serve there
            raise ValueError(f"{str(path)!r} is in use or not yours: name another.") from None
    raise ValueError(f"a gateway serves at {str(path)!r} already: stop it first.")
