"""Holders as the coordinator sees them; transports on one machine, and the server of a gateway."""

import contextlib
import logging
import os
import shutil
import socket
import stat
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.exceptions import BudgetError, HolderError, MessageError, RefusedError
from steadytree.federated import framing
from steadytree.federated.framing import Refusal, read, refusal
from steadytree.federated.gateway import Gateway
from steadytree.federated.messages import (
    Answer,
    HolderLike,
    Outcome,
    Request,
    read_answer,
    request_message,
)
from steadytree.federated.receipts import Receipts

LONGEST_PATH = 100  # bytes of a socket's path; systems allow 104 to 108
MOST_CONNECTIONS = 8
GRACE = 3.0  # seconds for requests in progress when the server stops
PATIENCE = 30.0  # seconds to receive or to send a message
_LOG = logging.getLogger(__name__)


class Holders(Protocol):
    """All holders of a study, for the coordinator."""

    names: tuple[str, ...]
    private: bool
    rows_per_person: int | None  # the most that any holder protects; None: rows are protected

    def ask(self, requests: Mapping[str, Request]) -> Outcome:
        """One round: each requested holder's answer, or the error instead of it."""


class Transport(Protocol):
    """Carries messages: in memory, by a socket, by files, by Flower."""

    names: tuple[str, ...]

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Carry a message to each named holder; the replies that arrived in time."""


class LocalHolders:
    """Holders in this process; one without an attribute `private` counts as not private."""

    def __init__(self, holders: Sequence[HolderLike]) -> None:
        self._holders = {holder.name: holder for holder in holders}
        self.names = tuple(self._holders)
        self.private = all(getattr(holder, "private", False) for holder in holders)
        stated = [getattr(holder, "rows_per_person", None) for holder in holders]
        counts = [number for number in stated if number is not None]
        self.rows_per_person = max(counts) if counts and len(counts) == len(stated) else None

    def ask(self, requests: Mapping[str, Request]) -> Outcome:
        """Send the requests one after the other; a refusal is returned as its error."""
        found: Outcome = {}
        for name, request in requests.items():
            try:
                found[name] = self._holders[name].answer(request)
            except (RefusedError, BudgetError, HolderError) as error:
                found[name] = error
        return found


@dataclass
class Traffic:
    """Seconds of each round, bytes to and from holders, and repeated requests."""

    seconds: list[float] = field(default_factory=list)
    bytes_out: int = 0
    bytes_in: int = 0
    asked_again: int = 0


class RemoteHolders:
    """Holders reached by a transport; messages are repeated until a deadline.

    A repeated message is identical: a holder that has answered it sends its stored answer, and
    nothing is spent twice.
    """

    def __init__(
        self,
        transport: Transport,
        private: bool,  # what the holders stated about their noise, and whom they protect
        deadline: float = 120.0,  # seconds for a round
        attempt: float = 40.0,  # seconds after which a message is repeated
        pause: float = 1.0,  # seconds before it is repeated to a holder that was unavailable
        clock: Clock = CLOCK,
        receipts: Receipts | None = None,
        rows_per_person: int | None = None,
    ) -> None:
        self._receipts, self.rows_per_person = receipts or Receipts("", {}), rows_per_person
        self._transport, self.names, self.private = transport, transport.names, private
        self._deadline, self._attempt, self._pause = deadline, attempt, pause
        self._clock, self.traffic = clock, Traffic()

    def ask(self, requests: Mapping[str, Request]) -> Outcome:
        """One round: repeat messages until each has a usable reply, or the deadline has passed."""
        left = {n: request_message(x, self._receipts.of(n)) for n, x in requests.items()}
        late = {name: HolderError(name, "no reply before the deadline") for name in left}
        limit, again = Limit(self._deadline, clock=self._clock), False
        done: Outcome = {}
        while left and (seconds := limit.left) > 0:
            self.traffic.asked_again += len(left) if again else 0
            self.traffic.bytes_out += sum(len(message) for message in left.values())
            replies = self._transport.exchange(left, min(self._attempt, seconds))
            for name, reply in replies.items():
                self.traffic.bytes_in += len(reply)
                outcome = self._outcome(name, reply, requests[name])
                if isinstance(outcome, HolderError) and outcome.refusal in framing.PASSING:
                    late[name] = outcome
                else:
                    done[name] = outcome
                    left.pop(name, None)
            if left:
                self._clock.sleep(min(self._pause, limit.left))
                again = True
        self.traffic.seconds.append(limit.elapsed)
        return {name: done.get(name, late[name]) for name in requests}

    def _outcome(self, name: str, reply: bytes, request: Request) -> Answer | HolderError:
        try:
            content = read(reply)
            refusal = framing.refusal_in(content)
            if refusal is not None:
                return HolderError(name, refusal.meaning, refusal)
            answer = read_answer(content, request, name)
            self._receipts.note(name, answer.ledger)
        except MessageError as error:
            return HolderError(name, str(error).rstrip("."), Refusal.MALFORMED)
        except HolderError as error:
            return error
        return answer


class InMemory:
    """Gateways in this process; messages are encoded and decoded as for any other transport."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self._gateways = {gateway.holder.name: gateway for gateway in gateways}
        self.names = tuple(self._gateways)

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Replies of all gateways, one after the other."""
        return {name: self._gateways[name].reply(message) for name, message in messages.items()}


class Sockets:
    """Gateways at Unix sockets of this machine, by holder, all in parallel."""

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths, self.names = dict(paths), tuple(paths)

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """The replies that arrived in time."""
        replies: dict[str, bytes] = {}
        with ThreadPoolExecutor(max_workers=min(len(messages), 32)) as pool:
            waiting = {
                pool.submit(framing.carry, self._paths[name], message, seconds): name
                for name, message in messages.items()
            }
            for done in as_completed(waiting):
                try:
                    replies[waiting[done]] = done.result()
                except TimeoutError:
                    continue
                except (OSError, MessageError):
                    replies[waiting[done]] = refusal(Refusal.UNREACHABLE)
        return replies


# ---- the other end of a socket ----
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
        """Serve until `stop` is called; requests in progress get a few seconds, then are given up.

        What was given up was not paid for, or is stored: it is as after a crash.
        """
        _LOG.info("gateway of %s serves", self._gateway.holder.name)
        threads: list[threading.Thread] = []
        try:
            while not self._stopping.is_set():
                try:
                    connection, _ = self._listener.accept()
                except TimeoutError:
                    continue
                threads = [thread for thread in threads if thread.is_alive()]
                threads.append(
                    threading.Thread(target=self._handle, args=(connection,), daemon=True)
                )
                threads[-1].start()
        finally:
            self._listener.close()
            limit = Limit(GRACE)
            for thread in threads:
                thread.join(limit.left)
            with contextlib.suppress(FileNotFoundError):
                self.path.unlink()
            _LOG.info("gateway of %s stopped", self._gateway.holder.name)

    def stop(self) -> None:
        """Make `serve` return; may be called from a signal handler."""
        self._stopping.set()
        self._gateway.cancel()

    def _handle(self, connection: socket.socket) -> None:
        # a caller that disconnects or sends half a message is ignored
        with connection, contextlib.suppress(OSError, MessageError):
            connection.settimeout(PATIENCE)
            if not self._free.acquire(blocking=False):
                framing.send_frame(connection, refusal(Refusal.BUSY))
                return
            try:
                message = framing.receive_frame(connection, framing.LARGEST_REQUEST, PATIENCE)
                connection.settimeout(PATIENCE)
                framing.send_frame(connection, self._gateway.reply(message))
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
            shutil.chown(path, group=group)
            path.chmod(0o660)
        listener.listen(MOST_CONNECTIONS)
    except BaseException as error:
        listener.close()
        if isinstance(error, LookupError):
            raise ValueError(f"there is no group {group!r} on this machine.") from None
        raise
    finally:
        os.umask(before)
    listener.settimeout(0.2)
    return listener


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
