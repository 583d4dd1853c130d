"""Transports that need nothing but this machine: gateways in memory, gateways at sockets."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Protocol

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree.federated.framing import (
    MEANING,
    PASSING,
    MessageError,
    Refusal,
    carry,
    read,
    refusal,
    refusal_code,
)
from steadytree.federated.gateway import Gateway
from steadytree.federated.messages import (
    Answer,
    Party,
    RefusedError,
    Request,
    question,
    read_answer,
)
from steadytree.privacy.ledger import BudgetError


class HolderError(ValueError):
    """A holder gave no answer that can be used; says which holder, and why."""

    def __init__(self, holder: str, reason: str, code: Refusal | None = None) -> None:
        super().__init__(f"holder {holder!r} gave no answer: {reason}.")
        self.holder, self.reason, self.code = holder, reason, code


class Holders(Protocol):
    """What a coordinator knows of all holders together."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def private(self) -> bool: ...

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """One round: an answer of each holder that was asked, or why there is none."""


class Transport(Protocol):
    """What carries letters: memory, a socket, files, Flower."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Carry a letter to each holder named; the replies that came within the time."""


class LocalHolders:
    """Holders in this process.

    Parameters
    ----------
    holders : list of Party
        One that does not say that it is `private` counts as not private.
    """

    def __init__(self, holders: Sequence[Party]) -> None:
        self._holders = {holder.name: holder for holder in holders}
        self.names = tuple(self._holders)
        self.private = all(getattr(holder, "private", False) for holder in holders)

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """Ask one after the other; a refusal is kept as the error it was."""
        found: dict[str, Answer | Exception] = {}
        for name, request in requests.items():
            try:
                found[name] = self._holders[name].answer(request)
            except (RefusedError, BudgetError, HolderError) as error:
                found[name] = error
        return found


@dataclass
class Traffic:
    """What a study cost on the way: rounds, seconds of each, bytes to and from holders."""

    seconds: list[float] = field(default_factory=list)
    bytes_out: int = 0
    bytes_in: int = 0
    asked_again: int = 0


class RemoteHolders:
    """Holders elsewhere: letters are carried, checked, and asked again until a deadline.

    A repeated letter is the same letter: a holder that has answered it sends what it stored, and
    nothing is spent twice.

    Parameters
    ----------
    transport : Transport
    private : bool
        What the holders said of their noise.
    deadline : float, default=120.0
        Seconds for a round; a holder that has not answered by then gave no answer.
    attempt : float, default=40.0
        Seconds after which a holder is asked again.
    pause : float, default=1.0
        Seconds before asking again a holder that could not answer just now.
    clock : Clock, optional
    """

    def __init__(
        self,
        transport: Transport,
        private: bool,
        deadline: float = 120.0,
        attempt: float = 40.0,
        pause: float = 1.0,
        clock: Clock = CLOCK,
    ) -> None:
        self._transport, self.private = transport, private
        self.names = transport.names
        self._deadline, self._attempt, self._pause = deadline, attempt, pause
        self._clock = clock
        self.traffic = Traffic()

    def ask(self, requests: Mapping[str, Request]) -> dict[str, Answer | Exception]:
        """One round of letters."""
        letters = {name: question(request) for name, request in requests.items()}

        def read_reply(name: str, content: dict[str, object]) -> Answer:
            answer = read_answer(content, letters[name])
            if answer.holder != name:
                raise MessageError("sent an answer in another holder's name")
            return answer

        found: dict[str, Answer | Exception] = {}
        found |= self.exchange(letters, read_reply)
        return found

    def exchange(
        self, letters: Mapping[str, bytes], read_reply: Callable[[str, dict[str, object]], Answer]
    ) -> "dict[str, Answer | Exception]":
        """Carry letters until each has a reply that can be used, or the deadline is over."""
        limit = Limit(self._deadline, clock=self._clock)
        done: dict[str, Answer | Exception] = {}
        late: dict[str, HolderError] = {
            name: HolderError(name, "nothing came before the deadline") for name in letters
        }
        left, again = dict(letters), False
        while left and (seconds := limit.left) > 0:
            self.traffic.asked_again += len(left) if again else 0
            self.traffic.bytes_out += sum(len(letter) for letter in left.values())
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
        return {name: done.get(name, late[name]) for name in letters}


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
    """Gateways in this process: every letter is written and read as on any other way.

    Parameters
    ----------
    gateways : list of Gateway
    """

    def __init__(self, gateways: list[Gateway]) -> None:
        self._gateways = {gateway.holder.name: gateway for gateway in gateways}
        self.names = tuple(self._gateways)

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """Replies of all gateways, one after the other."""
        return {name: self._gateways[name].reply(letter) for name, letter in letters.items()}


class Sockets:
    """Gateways at Unix sockets of this machine, asked all at once.

    Parameters
    ----------
    paths : mapping of holder's name to path of its socket
    """

    def __init__(self, paths: Mapping[str, str]) -> None:
        self._paths, self.names = dict(paths), tuple(paths)

    def exchange(self, letters: Mapping[str, bytes], seconds: float) -> dict[str, bytes]:
        """The replies that came within the time."""
        replies: dict[str, bytes] = {}
        with ThreadPoolExecutor(max_workers=min(len(letters), 32)) as pool:
            waiting = {
                pool.submit(carry, self._paths[name], letter, seconds): name
                for name, letter in letters.items()
            }
            for done in as_completed(waiting):
                try:
                    replies[waiting[done]] = done.result()
                except TimeoutError:
                    continue
                except (OSError, MessageError):
                    replies[waiting[done]] = refusal(Refusal.UNREACHABLE)
        return replies
