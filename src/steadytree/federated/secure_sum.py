"""SecureSum: noise once on a sum that nobody sees without it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.exceptions import RefusedError
from steadytree.data.splits import SplitTable
from steadytree.federated.holder import Holder
from steadytree.privacy.mechanisms import check_epsilon, release_counts, release_counts_zcdp, rho_of
from steadytree.privacy.noise import make_noise
from steadytree.privacy.sampled_tree import SampledTree

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
    schema : str
        Digest of the schema that all holders must share.
    epsilon : float
        For the whole run; every holder pays it before the first sum.
    delta : float, default=0.0
        0: discrete Laplace noise, epsilons add. More: discrete Gaussian noise under zCDP, rhos
        add, and the run is (epsilon, delta)-differentially private.
    testing_seed : int, optional
        FOR TESTS ONLY: needs holders that all have a testing seed of their own.
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
        self._epsilon = check_epsilon(epsilon) * kept
        self._rho = 0.0 if self._pure else rho_of(epsilon, delta) * kept
        # whoever knows the seed knows the noise: real rows must never be summed with one
        if any(holder.private == (testing_seed is not None) for holder in self._holders):
            raise ValueError(
                "a testing seed must be given to the secure sum and to all of its holders, or "
                "to none of them."
            )
        self._noise, self._session = make_noise(testing_seed), session
        for holder in self._holders:
            holder.join_sum(session, schema, epsilon, delta)

    def ask(
        self, share: float, kind: str, tree: SampledTree, candidates: SplitTable
    ) -> NDArray[Any]:
        """A noised sum for a share of the run's budget (of epsilon, or of rho)."""
        if not 0 < share <= self._left + ROUNDING:
            raise RefusedError("the run's budget for sums is spent.")
        self._left -= share
        asked = (self._session, tree, candidates, kind)
        parts = [holder._exact_counts(*asked) for holder in self._holders]
        exact = np.sum(parts, axis=0)
        # bins count a row once a feature, leaves and rows count it once
        times = len(candidates.space) if kind == "bins" else 1
        if self._pure:
            return release_counts(exact, self._epsilon * share, self._noise, times)
        return release_counts_zcdp(exact, self._rho * share, self._noise, times)
