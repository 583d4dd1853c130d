"""Holders as the coordinator sees them, and transports that carry messages on one machine."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Protocol

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.exceptions import BudgetError, HolderError, MessageError, RefusedError
from steadytree.federated.framing import (
    MEANING,
    PASSING,
    Refusal,
    carry,
    read,
    refusal,
    refusal_code,
)
from steadytree.federated.gateway import Gateway
from steadytree.federated.messages import Answer, HolderLike, Request, question, read_answer


class Holders(Protocol):
    """All holders of a study, for the coordinator."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def private(self) -> bool: ...

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """One round: each requested holder's answer, or the error instead of it."""


class Transport(Protocol):
    """Carries messages: in memory, by a socket, by files, by Flower."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def exchange(self, messages: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Carry a message to each named holder; the replies that arrived in time."""


class LocalHolders:
    """Holders in this process; one without an attribute `private` counts as not private."""

    def __init__(self, holders: Sequence[HolderLike]) -> None:
        self._holders = {holder.name: holder for holder in holders}
        self.names = tuple(self._holders)
        self.private = all(getattr(holder, "private", False) for holder in holders)

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """Send the requests one after the other; a refusal is returned as its error."""
        found: dict[str, Answer | Exception] = {}
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
        private: bool,  # what the holders stated about their noise
        deadline: float = 120.0,  # seconds for a round
        attempt: float = 40.0,  # seconds after which a message is repeated
        pause: float = 1.0,  # seconds before it is repeated to a holder that was unavailable
        clock: Clock = CLOCK,
    ) -> None:
        self._transport, self.private = transport, private
        self.names = transport.names
        self._deadline, self._attempt, self._pause = deadline, attempt, pause
        self._clock = clock
        self.traffic = Traffic()

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """One round of messages."""
        messages = {name: question(request) for name, request in requests.items()}

        def read_reply(name: str, content: dict[str, object]) -> Answer:
            answer = read_answer(content, requests[name])
            if answer.holder != name:
                raise MessageError("sent an answer in another holder's name")
            return answer

        found: dict[str, Answer | Exception] = {}
        found |= self.exchange(messages, read_reply)
        return found

    def exchange(
        self, messages: Mapping[str, bytes], read_reply: Callable[[str, dict[str, object]], Answer]
    ) -> "dict[str, Answer | Exception]":
        """Repeat messages until each has a usable reply, or the deadline has passed."""
        limit = Limit(self._deadline, clock=self._clock)
        done: dict[str, Answer | Exception] = {}
        late: dict[str, HolderError] = {
            name: HolderError(name, "no reply before the deadline") for name in messages
        }
        left, again = dict(messages), False
        while left and (seconds := limit.left) > 0:
            self.traffic.asked_again += len(left) if again else 0
            self.traffic.bytes_out += sum(len(message) for message in left.values())
            replies = self._transport.exchange(left, min(self._attempt, seconds))
            for name, reply in replies.items():
                self.traffic.bytes_in += len(reply)
                outcome = _outcome(name, reply, read_reply)
                if isinstance(outcome, HolderError) and outcome.code in PASSING:
                    late[name] = outcome
                else:
                    done[name] = outcome
                    left.pop(name, None)
            if left:
                self._clock.sleep(min(self._pause, limit.left))
                again = True
        self.traffic.seconds.append(limit.elapsed)
        return {name: done.get(name, late[name]) for name in messages}


def _outcome(
    name: str, reply: bytes, read_reply: Callable[[str, dict[str, object]], Answer]
) -> Answer | HolderError:
    try:
        content = read(reply)
        code = refusal_code(content)
        if code is not None:
            return HolderError(name, MEANING[code], code)
        return read_reply(name, content)
    except MessageError as error:
        return HolderError(name, str(error).rstrip("."), Refusal.MALFORMED)


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
                pool.submit(carry, self._paths[name], message, seconds): name
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
