"""rows_for_split, rows_for_tree: how many rows DP-TopDown needs for what its theorems promise.

Wang, Dick and Balcan (2020), Theorems 2, 3, 14 and 15, Lemmas 4, 6 and 12, Corollaries 5, 7 and 16,
with constants, for the mechanisms as corrected. Corrected too: scores are in rows, with a
sensitivity that does not depend on the private size of a leaf (Lemma 11); the gain is measured with
fresh noise, and includes the weight of its leaf, so that a split is off by 3 zeta, not 6; the
potential has to fall to error / 2, not to error, before labels may cost the other half, which makes
the last logarithm of the proof log(4 / error).

What is not covered: the rule that a leaf with little gain stays a leaf, which the paper's
experiments have and its theorem has not. LocalRNM promises nothing in general, as the paper says.
"""

import math

import numpy as np

from steadytree._base.validation import Integer, OneOf, Real
from steadytree.privacy.mechanisms import check_epsilon, score_slack
from steadytree.privacy.topdown import NOISE_BOUND, TopDown
from steadytree.privacy.tree_mechanism import SCORE_SENSITIVITY


def noise_bound(scale: float, delta: float, n_holders: int = 1) -> float:
    """What a sum of k discrete Laplace variables exceeds in size with probability at most delta.

    One: scale * ln(1 / delta), Lemma 12, rounded up, since the noise is a whole number. Several:
    with u = lambda * scale in (0, 1), the moment of each is at most 1 / (1 - u^2), since
    sinh(x) / sinh(y) <= x / y for x <= y; by Chernoff's bound the sum is at most
    scale * (ln(2 / delta) - k ln(1 - u^2)) / u for any u. This grows with the root of k, where the
    paper's union bound has k ln k.

    >>> round(noise_bound(1.0, 0.05), 3), round(noise_bound(1.0, 0.05, 100), 1)
    (3, 38.8)
    """
    if n_holders == 1:
        return math.ceil(scale * math.log(1 / delta))
    u = np.linspace(0.001, 0.999, 999)
    return float(scale * ((math.log(2 / delta) - n_holders * np.log1p(-(u**2))) / u).min())


def rows_for_split(
    loss: float,
    epsilon: float,
    delta: float,
    n_splits: int,
    *,
    method: str = "rnm",
    criterion: str = "gini",
    n_classes: int = 2,
    n_holders: int = 1,
) -> int:
    """Rows of a leaf from which its split, and the gain stated for it, are as good as promised.

    With probability at least 1 - delta, the chosen split gains at most `loss` less a row than the
    best one, and its estimated gain a row is off by at most `loss`.

    Parameters
    ----------
    loss : float
        Zeta, in units of the criterion: Gini impurity, or bits of entropy.
    epsilon : float
        What the split of this leaf costs.
    delta : float
        Probability that the promise fails.
    n_splits : int
        Candidate splits; where columns differ, columns times the most splits of one.
    method : {"rnm", "noisy_counts"}, default="rnm"
        One machine (Theorem 14), or noisy counts of all splits from all holders (Theorem 15).
    criterion : {"gini", "entropy"}, default="gini"
    n_classes : int, default=2
    n_holders : int, default=1
        For "noisy_counts".

    Examples
    --------
    >>> rows_for_split(0.05, 1.0, 0.05, 100), rows_for_split(0.05, 1.0, 0.05, 100, n_classes=10)
    (3831, 25756)
    """
    Real(above=0, below=1).check(loss, "loss")
    Real(above=0, below=1).check(delta, "delta")
    Integer(1).check(n_splits, "n_splits")
    OneOf("rnm", "noisy_counts").check(method, "method")
    OneOf(*SCORE_SENSITIVITY).check(criterion, "criterion")
    Integer(2).check(n_classes, "n_classes")
    Integer(1).check(n_holders, "n_holders")
    epsilon = check_epsilon(epsilon)
    counted = 1 if method == "rnm" else n_splits
    counters = 2 * n_classes * counted
    if method == "rnm":
        # Half of epsilon selects, half counts; each may fail with delta / 2. With priors p, a noisy
        # score exceeds the exact one by rate * t with probability at most p e^-t, any of them with
        # at most e^-t: the chosen one is at most rate * (ln(1 / delta) - ln p) below the best.
        if n_holders > 1:
            raise ValueError("n_holders must be 1 for method='rnm', which is for one machine.")
        scale, failure, share = 2 / epsilon, delta / 2, 1.0
        rate = SCORE_SENSITIVITY[criterion] * scale / (1 - score_slack(n_classes))
        needed = rate * (math.log(2 / delta) + math.log(n_splits)) / loss
    else:  # all estimates within loss / 2: then the highest is within loss of the best
        scale, failure, share, needed = n_splits / epsilon, delta, 0.5, 0.0
    off = noise_bound(scale, failure / counters, n_holders)
    # pooling with the depth above at most doubles what a count is off; small ones are taken as 0
    small = NOISE_BOUND * math.log(counters) * scale * math.sqrt(n_holders)
    moved = 2 * n_classes * (2 * off + small)
    return math.ceil(max(needed, _size_for(moved, share * loss, criterion)))


def _size_for(moved: float, loss: float, criterion: str) -> float:
    """A size m at which counts that are off by `moved` in all shift the gain by at most loss * m.

    Moving one row changes rows times impurity of a leaf, and of its side, by 0 to D, so the gain by
    at most D: 2 for Gini, log2(m + moved) + log2(e) for entropy.
    """
    if criterion == "gini":
        return 2 * moved / loss
    size = 2 * moved / loss
    while (math.log2(size + moved) + math.log2(math.e)) * moved > loss * size:
        size *= 1.01
    return size


def rows_for_tree(
    error: float,
    epsilon: float,
    delta: float,
    advantage: float,
    n_splits: int,
    *,
    max_splits: int,
    method: str = "rnm",
    budget: str = "uniform",
    max_depth: int | None = None,
    leaf_share: float = 0.5,
    n_holders: int = 1,
) -> int:
    """Rows from which DP-TopDown makes as much progress as its theorem says (two classes, entropy).

    If some split is right on half of the rows plus `advantage`, for every weighting of the rows
    (the weak learning assumption), then with probability at least 1 - delta each of `max_splits`
    splits lowers the potential by half of what it would without noise, and labels cost at most
    error / 2 of the rows. `splits_for_error` says how many splits the proof needs for an error.

    Parameters
    ----------
    error : float
        Training error aimed at.
    epsilon, delta : float
        The whole budget, and the probability that the promise fails.
    advantage : float
        Gamma of the weak learning assumption, at most 1/2.
    n_splits : int
        Candidate splits.
    max_splits : int
        M.
    method : {"rnm", "noisy_counts"}, default="rnm"
        Corollary 5, or Corollaries 7 and 16.
    budget : {"uniform", "decay"}, default="uniform"
        With "decay" the deepest leaf has almost nothing: limit `max_depth`.
    max_depth : int, optional
    leaf_share : float, default=0.5
    n_holders : int, default=1

    Examples
    --------
    >>> rows_for_tree(0.1, 1.0, 0.05, 0.25, 100, max_splits=7) > 10**9
    True
    """
    Real(above=0, below=1).check(error, "error")
    Real(above=0, most=0.5).check(advantage, "advantage")
    limits = TopDown(max_splits, error, budget, leaf_share, "entropy", max_depth)
    part = limits.epsilons(check_epsilon(epsilon), 0.0)[-1]
    # 3 zeta is at most half of the fall gamma^2 G / (4 t log2(2 / G)) at t = M and G = error / 2
    loss = advantage**2 * error / (48 * max_splits * math.log2(4 / error))
    failure = delta / (2 * (2 * max_splits + 1))
    found = {"method": method, "criterion": "entropy", "n_holders": n_holders}
    rows = 2 * max_splits / error * rows_for_split(loss, part, failure, n_splits, **found)  # type: ignore[arg-type]
    if limits.share:  # a wrong label of one of M + 1 leaves costs at most twice what a count is off
        each = delta / (4 * 2 * (max_splits + 1))
        off = noise_bound(1 / (epsilon * limits.share), each, n_holders)
        rows = max(rows, 4 * (max_splits + 1) * off / error)
    return math.ceil(rows)


def splits_for_error(error: float, advantage: float) -> float:
    """Splits after which the potential is at most error / 2, by the theorem's recurrence.

    G(t + 1) <= G(t) - gamma^2 G(t) / (8 t log2(2 / G(t))), from G(1) <= 1. In L = log2(2 / G) the
    differential equation is L dL = gamma^2 / (8 ln 2) d ln t, which falls no faster than the steps.

    >>> f"{splits_for_error(0.5, 0.5):.0e}"
    '3e+38'
    """
    Real(above=0, most=1).check(error, "error")
    Real(above=0).check(advantage, "advantage")
    exponent = 4 * math.log(2) / advantage**2 * (math.log2(4 / error) ** 2 - 1)
    return math.exp(exponent) if exponent < 700 else math.inf
