"""A whole tree from one exponential mechanism: what one row changes is one leaf of every tree.

Guarantee of `draw_tree`: epsilon-differential privacy for adding or removing one row.

Utility of a tree T on data D, summed over its leaves:

* ``RIGHT``: rows whose class is the leaf's label. A row falls in exactly one leaf of T, so adding
  it changes the utility by 0 or 1.
* ``PURE``: minus rows times Gini impurity, ``-(n - sum_c n_c^2 / n)``. Adding a row of class c to
  a leaf with n rows, a of them of class c, and S = sum n_c^2 changes ``n - S / n`` by
  ``(n + S / n - 2 a) / (n + 1)``. It is at least 0, since S >= a^2 makes the numerator at least
  ``(n - a)^2 / n``; and less than 2, since S <= n^2 and a >= 0 bound it by ``2 n / (n + 1)``.

So in both cases an added row moves the utility of EVERY tree the same way (monotone) by at most
D = 1 or D = 2, however deep the trees are.

Mechanism: P(T) proportional to prior(T) exp(epsilon u(T, D) / D) with a public prior. Between
neighbours each weight changes by a factor in [1, e^epsilon] (or each by one in [e^-epsilon, 1]),
and so does their sum: the ratio, and with it the log-probability of every tree, changes by at most
epsilon. No factor 2 is lost, because the utility is monotone. Labels are part of T for RIGHT.

Drawing: given the first question, the two sub-trees are independent and follow the same law on
the rows of either side. So the first question is drawn by the summed weights of all trees that
begin with it (`root_terms`, exact sum-product), then each side in turn.

Floating point: a draw follows its log-weights exactly (`Noise.place`); the log-weights are
computed in double precision with an error of at most eta, which `sampler_slack` bounds from public
numbers. A tree takes at most q = 2^(depth+1) - 1 draws, each probability is off by a factor within
e^(2 eta), on each of two neighbours: 4 q eta in all. The tree is drawn with epsilon minus this.
"""

from typing import Any

import numpy as np

from steadytree.core.candidates import Candidates
from steadytree.kernels import PURE, RIGHT, order_by_class, pack_answers, root_terms
from steadytree.privacy.drawn import BlockRows, Drawn
from steadytree.privacy.mechanisms import check_part
from steadytree.privacy.noise import Noise, _library

MOST_ROWS = 2**27  # of one data set; the bound on rounding errors needs one that is public
DEEPEST_BLOCK = 3
STOP = 0.2  # prior chance of a leaf
UTILITIES = {"right": RIGHT, "pure": PURE}
SENSITIVITY = {"right": 1.0, "pure": 2.0}
UNIT = 2.0**-53


def sampler_slack(epsilon: float, depth: int, n_candidates: int, n_classes: int) -> float:
    """What rounding may cost at most, from public numbers alone.

    eta bounds the error of a log-weight. Leaves' log-weights sum to at most epsilon * MOST_ROWS in
    size, and priors to 2^depth * (log m + 2); each passes through fewer than 16 roundings a level,
    and a leaf's squares through one more for each of K classes. A sum of m + 1 exponentials adds
    fewer than m + 8 units to its logarithm's error, and the sum over labels in each of 2^depth
    leaves fewer than K + 8.
    """
    size = epsilon * MOST_ROWS + 2**depth * (np.log(n_candidates) + 2.0)
    sums = n_candidates + 8 + 2**depth * (n_classes + 8)
    eta = depth * UNIT * ((16 + n_classes) * size + sums)
    return float(4 * (2 ** (depth + 1) - 1) * eta)


def draw_tree(
    block: BlockRows,
    candidates: Candidates,
    epsilon: float,
    depth: int,
    utility: str,
    noise: Noise,
) -> Drawn:
    """Draw one tree of at most `depth` levels for the rows; the proof is at the top of this file.

    Parameters
    ----------
    block : BlockRows
    candidates : Candidates
        Public: made from the schema.
    epsilon : float
        What the whole tree costs, its labels included where the utility is "right".
    depth : int, 1 to 3
    utility : {"right", "pure"}
    noise : Noise
    """
    epsilon = check_part(epsilon)
    if not 1 <= depth <= DEEPEST_BLOCK:
        raise ValueError(f"depth must be 1 to {DEEPEST_BLOCK}, got {depth}.")
    if block.codes.shape[1] > MOST_ROWS:
        raise ValueError(f"a data set may have at most {MOST_ROWS:,} rows.")
    rate = epsilon - sampler_slack(epsilon, depth, len(candidates), block.n_classes)
    if rate <= 0:
        raise ValueError("epsilon is too small to cover rounding errors: use at least 1e-6.")
    return _draw(block, candidates, rate, depth, utility, noise)


def _draw(
    block: BlockRows, candidates: Candidates, rate: float, depth: int, utility: str, noise: Noise
) -> Drawn:
    within = block.class_counts()
    if depth > 0:
        ordered, word_offsets = order_by_class(block.labels, block.rows, block.n_classes)
        bits = pack_answers(block.codes, ordered, *candidates.arrays)
        prior = candidates.log_prior
        kind = UTILITIES[utility]
        terms = root_terms(bits, word_offsets, within, prior, STOP, rate, kind, depth)
        question = noise.place(terms)
        if question < len(candidates):
            yes = candidates.answers(block.codes, question)[block.rows]
            below = (candidates, rate, depth - 1, utility, noise)
            return Drawn(question, _draw(block.take(yes), *below), _draw(block.take(~yes), *below))
    if utility == "pure":
        return Drawn(-1)
    return Drawn(-1, label=noise.place(rate * within.astype(np.float64)))


def whole_tree_measurement(
    candidates: Candidates, n_classes: int, epsilon: float, depth: int, noise: Noise
) -> Any:
    """`draw_tree` with labels as an OpenDP measurement, so that OpenDP's odometers can count it.

    Its argument is a list of rows, each a list of codes and a label last; its metric counts rows
    added or removed, and k of them cost k epsilon. Rows outside the codes and classes are refused.
    """
    if not noise.private:
        raise ValueError("a measurement needs private noise: this one has a testing seed.")
    dp = _library()
    limits = [*(column.n_bins + 1 for column in candidates.space), n_classes]

    def member(listed: Any) -> bool:
        return isinstance(listed, list) and all(_is_row(row, limits) for row in listed)

    def function(listed: list[list[int]]) -> Drawn:
        if not member(listed):  # OpenDP does not ask before it calls
            raise ValueError("rows must be lists of codes of the candidates and a label last.")
        table = np.array(listed, np.int64).reshape(len(listed), len(limits))
        codes, labels = np.ascontiguousarray(table[:, :-1].T), table[:, -1].astype(np.int32)
        block = BlockRows(codes, labels, n_classes, np.arange(len(table)))
        return draw_tree(block, candidates, epsilon, depth, "right", noise)

    return dp.m.make_user_measurement(
        dp.user_domain("rows of codes and a label", member),
        dp.symmetric_distance(),
        dp.max_divergence(),
        function,
        lambda d_in: float(d_in) * epsilon,
    )


def _is_row(row: Any, limits: list[int]) -> bool:
    return (
        isinstance(row, list)
        and len(row) == len(limits)
        and all(type(n) is int and 0 <= n < end for n, end in zip(row, limits, strict=True))
    )
