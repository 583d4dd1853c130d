"""One instance of the study: a proof on all rows, or both trees judged on shifted test rows."""

import functools
import time
import zlib

import numpy as np
from instances import draw_certainty
from sklearn.model_selection import train_test_split

from steadytree import Perturbation, RobustTreeClassifier, shift_accuracy

REGULARISERS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)
SHIFTS = {
    "as expected": {},
    "-0.2": {"offset": -0.2},
    "-0.1": {"offset": -0.1},
    "+0.1": {"offset": 0.1},
    "within 0.05": {"spread": 0.05},
    "within 0.1": {"spread": 0.1},
    "within 0.15": {"spread": 0.15},
    "within 0.2": {"spread": 0.2},
}


# the curve lambda = 1 has as many instances as the others: regularisers take the place of means
PLAIN = {0.6: 0.3, 0.7: 0.5, 0.8: 0.7, 0.9: 0.9}


def seed_of(asked, own_split):
    """0, or a seed of the instance's own for its split of the rows and its certainties."""
    return zlib.crc32(repr(sorted(asked.items())).encode()) if own_split else 0


def proof(X, y, asked, time_limit, own_split=False):
    """Objective, bound and CPU seconds (to the proof where there is one) on all rows."""
    more = {"regularisation": PLAIN[asked["mean"]]} if asked["confidence"] == 1 else {}
    certainty = draw_certainty(X.columns, asked["mean"], seed_of(asked, own_split))
    noise = None if more else Perturbation.from_certainty(certainty, asked["confidence"])
    at_proof, start = [], time.process_time()

    def note(step):
        if step.bound == step.incumbent:
            at_proof.append(time.process_time() - start)

    model = RobustTreeClassifier(
        asked["depth"], noise, time_limit=time_limit, progress=note, random_state=0, **more
    ).fit(X, y)
    return {
        "objective": model.objective_,
        "bound": model.bound_,
        "majority": model.majority_,
        "proven": model.proven_,
        "gap": model.optimality_gap_,
        "seconds": round(at_proof[0] if at_proof else time.process_time() - start, 4),
    }


def gain(X, y, asked, time_limit, own_split=False):
    """Worst and average accuracy of the robust and of the plain tree under every shift.

    80 % of the rows train; both trees are judged on the others, shifted 5,000 times.
    """
    seed = seed_of(asked, own_split)
    certainty = draw_certainty(X.columns, asked["mean"], seed)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.2, random_state=seed, stratify=y
    )
    noise = Perturbation.from_certainty(certainty, asked["confidence"])
    robust = RobustTreeClassifier(asked["depth"], noise, time_limit=time_limit, random_state=0).fit(
        X_train, y_train
    )
    plain = plain_tree(_Rows(X_train, y_train, (asked["set"], seed)), asked["depth"], time_limit)
    majority = 100 * np.mean(y_test == _most_frequent(y_train))
    found = {"proven": robust.proven_, "plain_proven": plain.proven_, "majority": majority}
    for shift, arguments in SHIFTS.items():
        arguments = {**arguments, "random_state": 1, "flip_flags": False}  # the paper's (8)
        both = [
            shift_accuracy(model, X_test, y_test, certainty, **arguments)
            for model in (robust, plain)
        ]
        found[shift] = [[round(100 * s.worst, 2), round(100 * s.average, 3)] for s in both]
    return found


class _Rows:
    """Training rows that are told apart by the name of their set and the seed of their split."""

    def __init__(self, X, y, name):
        self.X, self.y, self.name = X, y, name

    def __eq__(self, other):
        return self.name == other.name

    def __hash__(self):
        return hash(self.name)


@functools.cache
def plain_tree(rows, depth, time_limit):
    """The optimal tree without perturbation, its regulariser chosen on held-out training rows."""
    X_fit, X_hold, y_fit, y_hold = train_test_split(rows.X, rows.y, test_size=0.2, random_state=1)

    def fitted(regulariser, X, y):
        return RobustTreeClassifier(
            depth, regularisation=regulariser, time_limit=time_limit, random_state=0
        ).fit(X, y)

    scores = [
        fitted(regulariser, X_fit, y_fit).score(X_hold, y_hold) for regulariser in REGULARISERS
    ]
    best = max(range(len(scores)), key=lambda place: (scores[place], place))
    return fitted(REGULARISERS[best], rows.X, rows.y)


def _most_frequent(labels):
    values, counts = np.unique(labels, return_counts=True)
    return values[counts.argmax()]
