"""Print all tables of the study.

``python studies/tree_distance/run.py [frontier] [sensitivity] [sequence] [--quick]``; the data
folder is named by STEADYTREE_DATA. `results.txt` holds what one run printed.
"""

import sys
import time

import frontier
import sensitivity
import sequence
from data import data_sets

STUDIES = {"frontier": frontier.study, "sensitivity": sensitivity.study, "sequence": sequence.study}
QUICK = {
    "frontier": {"n_splits": 2, "n_trees": 20},
    "sensitivity": {"n_repeats": 2, "n_moves": 3},
    "sequence": {"n_splits": 1},
}


def main(arguments):
    quick = "--quick" in arguments
    wanted = [name for name in arguments if name in STUDIES] or list(STUDIES)
    for study in wanted:
        for name, X, y in data_sets():
            start = time.process_time()
            STUDIES[study](name, X, y, **(QUICK[study] if quick else {}))
            print(f"({study}, {name}: {time.process_time() - start:.0f} s CPU)", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
