"""Transports that need nothing but this machine: gateways in memory, gateways at sockets."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed

from steadytree.sources.gateway import Gateway
from steadytree.sources.letters import Code, LetterError, carry, refusal


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
                except (OSError, LetterError):
                    replies[waiting[done]] = refusal(Code.UNREACHABLE)
        return replies
