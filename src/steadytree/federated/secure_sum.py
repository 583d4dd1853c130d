"""Sums of holders' counts of which nobody sees one holder's part: masked, or in one process."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import RefusedError
from steadytree.data.splits import SplitTable
from steadytree.federated import masking
from steadytree.federated.holder import ROUNDING, Holder
from steadytree.federated.messages import SUM, Request, SumStep
from steadytree.federated.session import Session
from steadytree.privacy import mechanisms
from steadytree.privacy.mechanisms import release_counts, rho_of
from steadytree.privacy.sampled_tree import SampledTree, leaves_of, to_numbers
from steadytree.privacy.topdown import count_variance

Parts = Mapping[int, bytes]  # by holder


class MaskedSums:
    """Sums for shares of a study's rho; every holder adds its share of the noise (`masking`).

    Four rounds of messages a sum. A holder that is missing in one of them is dropped, and at least
    the session's minimum remain. The noise of `honest` of them is enough for the guarantee: the
    others may tell theirs, or add none.
    """

    def __init__(self, session: Session, epsilon: float, delta: float, honest: int) -> None:
        self._session, self._honest = session, honest
        self._epsilon, self._left = epsilon, 1.0
        self._rho = rho_of(epsilon, delta) * (1 - 2 * ROUNDING)

    def ask(
        self, share: float, kind: str, tree: SampledTree, candidates: SplitTable
    ) -> NDArray[Any]:
        """A noised sum for a share of the study's rho."""
        if not 0 < share <= self._left + ROUNDING:
            raise RefusedError("the run's budget for sums is spent.")
        self._left -= share
        session = self._session
        fixed = (session.next_round, kind, self._rho * share, session.minimum, self._honest)
        n_leaves, n_classes = len(leaves_of(tree)), session.n_classes
        shapes = {"rows": (1,), "leaf counts": (n_leaves, n_classes)}
        shape = shapes.get(kind, (n_leaves, candidates.n_bins, n_classes))
        keys = self._step("keys", fixed, tree, masking.ADVERTISED)
        own = {name: keys[index] for index, name in self._names(keys).items()}
        every = dict.fromkeys(keys, own)
        n_others = len(keys) - 1
        shares = self._step("shares", fixed, tree, masking.ENCRYPTED * n_others, every)
        for_each = {index: self._received(index, shares, own) for index in shares}
        size = int(np.prod(shape))
        masked = self._numbers("vector", fixed, tree, size, for_each)
        for index in masked:
            session.charge(index, SUM, self._epsilon * share)
        senders = dict.fromkeys(self._names(masked).values(), b"")
        for_all = dict.fromkeys(masked, senders)
        unmasked = self._step("unmask", fixed, tree, masking.SHARE * len(shares), for_all)
        context = masking.sum_context(self._request(fixed, tree), session.private)
        members = sorted(self._names(shares).values())
        revealed = {
            name: dict(zip(members, _pieces(unmasked[index], masking.SHARE), strict=True))
            for index, name in self._names(unmasked).items()
        }
        numbers = {name: masked[index] for index, name in self._names(masked).items()}
        given = {
            who: {name: int.from_bytes(piece, "big") for name, piece in pieces.items()}
            for who, pieces in revealed.items()
        }
        limits = (members, context, session.minimum)
        return masking.unmasked_sum(numbers, given, own, *limits).reshape(shape)

    def variance(self, share: float) -> float:
        """Of a count that holds a row once, asked for a share: all add noise, some would do."""
        most = self._session.holders.rows_per_person or 1
        extra = len(self._session.active) / self._honest
        return extra * most**2 / (2 * self._rho * share)

    def _names(self, found: Mapping[int, Any]) -> dict[int, str]:
        return {index: self._session.holders.names[index] for index in found}

    def _received(self, index: int, shares: Parts, own: Mapping[str, bytes]) -> dict[str, bytes]:
        """What the others sent for one holder: each sent one piece for every other, by name."""
        name, found = self._session.holders.names[index], {}
        for sender, content in shares.items():
            if sender != index:
                listed = sorted(set(own) - {self._session.holders.names[sender]})
                pieces = _pieces(content, masking.ENCRYPTED)
                found[self._session.holders.names[sender]] = pieces[listed.index(name)]
        return found

    def _request(self, fixed: tuple[Any, ...], tree: SampledTree) -> Request:
        session, listed = self._session, (to_numbers(tree),)
        named = (session.name, fixed[0], SUM, self._epsilon, session.digest)
        return Request(*named, session.n_bins, listed, sum=SumStep("keys", *fixed))

    def _numbers(
        self,
        step: Any,
        fixed: tuple[Any, ...],
        tree: SampledTree,
        size: int,
        parts: Mapping[int, Mapping[str, bytes]] | None = None,
    ) -> dict[int, NDArray[np.int64]]:
        """One step of all holders that are still there."""
        known = parts or {}
        listed = list(parts) if parts is not None else list(self._session.active)
        own = {}
        for index in listed:
            texts = {name: content.hex() for name, content in known.get(index, {}).items()}
            own[index] = {"sum": SumStep(step, *(*fixed, texts))}
        each = dict.fromkeys(listed, self._epsilon)
        return self._session.ask(each, SUM, size, (tree,), own=own)

    def _step(self, *how: Any) -> dict[int, bytes]:
        return {index: masking.to_bytes(found) for index, found in self._numbers(*how).items()}


def _pieces(content: bytes, size: int) -> list[bytes]:
    return [content[start : start + size] for start in range(0, len(content), size)]


class SecureSum:
    """Sums of holders' counts, noised once; an in-process stand-in for secure aggregation.

    It is trusted not to reveal the exact counts of single holders; over a network that is the
    protocol's task. Then an added or removed row changes the sum by as much as it changes its
    holder's counts, and noise on the sum protects the rows of all holders. Every holder pays
    `epsilon` for the whole run before the first sum. With delta 0 the noise is discrete Laplace
    and epsilons add; otherwise it is discrete Gaussian under zCDP, rhos add, and the run is
    (epsilon, delta)-differentially private. A testing seed, FOR TESTS ONLY, needs holders that all
    have one.
    """

    def __init__(
        self,
        holders: Sequence[Holder],
        session: str,
        schema: str,
        epsilon: float,
        delta: float = 0.0,
        testing_seed: int | None = None,
    ) -> None:
        self._holders, self._pure = list(holders), delta == 0
        self._left = 1.0  # share of the run's budget
        kept = 1 - 2 * ROUNDING  # shares may add up to 1 + ROUNDING, and the run costs no more
        self._epsilon = mechanisms.check_epsilon(epsilon) * kept
        self._rho = 0.0 if self._pure else mechanisms.rho_of(epsilon, delta) * kept
        # whoever knows the seed knows the noise: real rows must never be summed with one
        if any(holder.private == (testing_seed is not None) for holder in self._holders):
            raise ValueError(
                "a testing seed must be given to the secure sum and to all of its holders, or "
                "to none of them."
            )
        self._noise, self._session = mechanisms.make_noise(testing_seed), session
        for holder in self._holders:
            holder.join_sum(session, schema, epsilon, delta)

    @property
    def _most(self) -> int:
        return max(holder.rows_per_person or 1 for holder in self._holders)

    def variance(self, share: float) -> float:
        """Of a count that holds a row once, asked for a share."""
        if self._pure:
            return count_variance(self._epsilon * share, self._most)
        return self._most**2 / (2 * self._rho * share)

    def ask(
        self, share: float, kind: str, tree: SampledTree, candidates: SplitTable
    ) -> NDArray[Any]:
        """A noised sum for a share of the run's budget (of epsilon, or of rho)."""
        if not 0 < share <= self._left + ROUNDING:
            raise RefusedError("the run's budget for sums is spent.")
        self._left -= share
        parts = [h._exact_counts(self._session, tree, candidates, kind) for h in self._holders]
        exact = np.sum(parts, axis=0)
        # bins count a row once a feature, leaves and rows count it once
        times = len(candidates.space) if kind == "bins" else 1
        most = self._most
        if self._pure:
            return release_counts(exact, self._epsilon * share, self._noise, times * most)
        squared = times * most**2  # the l2 sensitivity of k rows is k times that of one
        return mechanisms.release_counts_zcdp(exact, self._rho * share, self._noise, squared)
