"""Retraining distance against accuracy, what the distance answers to, batches in sequence.

``python studies/tree_distance/run.py [frontier] [shallow] [sensitivity] [sequence] [--quick]
[--first]``; the data folder is named by STEADYTREE_DATA. ``--first`` stays with breast cancer,
which needs none. `results.txt` holds what was printed.
"""

import sys
import time
from itertools import islice

import frontier
import sensitivity
import sequence
import shallow
from data import data_sets

STUDIES = {
    "frontier": frontier.study,
    "shallow": shallow.study,
    "sensitivity": sensitivity.study,
    "sequence": sequence.study,
}
QUICK = {
    "frontier": {"n_splits": 2, "n_trees": 20},
    "shallow": {"n_splits": 2, "n_trees": 20},
    "sensitivity": {"n_repeats": 2, "n_moves": 3},
    "sequence": {"n_splits": 1},
}


def main(arguments):
    quick = "--quick" in arguments
    wanted = [name for name in arguments if name in STUDIES] or list(STUDIES)
    for study in wanted:
        for name, X, y in islice(data_sets(), 1 if "--first" in arguments else None):
            start = time.process_time()
            STUDIES[study](name, X, y, **(QUICK[study] if quick else {}))
            print(f"({study}, {name}: {time.process_time() - start:.0f} s CPU)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
