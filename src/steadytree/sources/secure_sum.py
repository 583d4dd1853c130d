"""SecureSum: noise once on a sum that nobody sees without it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree.core.candidates import Candidates
from steadytree.privacy.drawn import Drawn
from steadytree.privacy.mechanisms import (
    check_epsilon,
    release_counts,
    release_counts_zcdp,
    rho_of,
)
from steadytree.privacy.noise import make_noise
from steadytree.sources.holder import Holder
from steadytree.sources.messages import RefusedError

ROUNDING = 1e-9


class SecureSum:
    """Sums of holders' counts, noised once; stands in memory for a secure aggregation protocol.

    What it needs to be trusted for: that the exact counts of single holders reach nobody, which
    in one process is a promise and over a network the protocol's task. Then an added or removed
    row changes the sum by as much as it changes its holder's counts, and one draw of noise protects
    the rows of all holders.

    Parameters
    ----------
    holders : list of Holder
    session : str
    epsilon : float
        For the whole run; every holder pays it before the first sum.
    delta : float, default=0.0
        0: discrete Laplace noise, epsilons add. More: discrete Gaussian noise under zCDP, rhos
        add, and the run is (epsilon, delta)-differentially private.
    testing_seed : int, optional
        FOR TESTS ONLY.
    """

    def __init__(
        self,
        holders: Sequence[Holder],
        session: str,
        epsilon: float,
        delta: float = 0.0,
        testing_seed: int | None = None,
    ) -> None:
        self._holders, self._pure = list(holders), delta == 0
        self._left = 1.0  # share of the run's budget
        self._epsilon = check_epsilon(epsilon)
        self._rho = 0.0 if self._pure else rho_of(epsilon, delta)
        self._noise = make_noise(testing_seed)
        if testing_seed is None and not all(holder.private for holder in self._holders):
            raise ValueError("holders with a testing seed need a secure sum with one.")
        for holder in self._holders:
            holder.join_sum(session, epsilon, delta)

    def ask(self, share: float, kind: str, tree: Drawn, candidates: Candidates) -> NDArray[Any]:
        """A noised sum for a share of the run's budget (of epsilon, or of rho)."""
        if not 0 < share <= self._left + ROUNDING:
            raise RefusedError("the run's budget for sums is spent.")
        self._left -= share
        parts = [holder.exact_counts(tree, candidates, kind) for holder in self._holders]
        exact = np.sum(parts, axis=0)
        # bins count a row once a feature, leaves and rows count it once
        times = len(candidates.space) if kind == "bins" else 1
        if self._pure:
            return release_counts(exact, self._epsilon * share, self._noise, times)
        return release_counts_zcdp(exact, self._rho * share, self._noise, times)
