"""Retraining distance against accuracy, what the distance answers to, batches in sequence.

``python studies/tree_distance/run.py [frontier] [shallow] [sensitivity] [sequence]
[regulariser] [--quick] [--first] [--out FOLDER]``; the data folder is named by STEADYTREE_DATA.
``--first`` stays with breast cancer, which needs none. `results.txt` holds what was printed.
"""

import argparse
import pathlib
import time
from itertools import islice

import frontier
import regulariser
import sensitivity
import sequence
import shallow
from pictures import cloud, trade_off

from data import data_sets

STUDIES = {
    "frontier": frontier.study,
    "shallow": shallow.study,
    "sensitivity": sensitivity.study,
    "sequence": sequence.study,
    "regulariser": regulariser.study,
}
QUICK = {
    "frontier": {"n_splits": 2, "n_trees": 20},
    "shallow": {"n_splits": 2, "n_trees": 20},
    "sensitivity": {"n_repeats": 2, "n_moves": 3},
    "sequence": {"n_splits": 1},
    "regulariser": {"n_splits": 1},
}


def main(arguments=None):
    """Run the parts that were asked for, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(STUDIES)}; all")
    parser.add_argument("--quick", action="store_true", help="few splits and small collections")
    parser.add_argument("--first", action="store_true", help="breast cancer only")
    parser.add_argument("--out", type=pathlib.Path, help="a folder for pictures")
    asked = parser.parse_args(arguments)
    unknown = [part for part in asked.parts if part not in STUDIES]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose some of {', '.join(STUDIES)}")
    for study in asked.parts or STUDIES:
        for name, X, y in islice(data_sets(), 1 if asked.first else None):
            start = time.process_time()
            found = STUDIES[study](name, X, y, **(QUICK[study] if asked.quick else {}))
            print(f"({study}, {name}: {time.process_time() - start:.0f} s CPU)", flush=True)
            if asked.out is not None and study == "frontier":
                asked.out.mkdir(parents=True, exist_ok=True)
                again, run = found
                trade_off(again, name, asked.out)
                cloud(run, name, asked.out)


if __name__ == "__main__":
    main()
