"""Retraining distance against accuracy, what the distance answers to, batches in sequence.

``python studies/tree_distance/run.py [frontier] [shallow] [sensitivity] [sequence]
[regulariser] [--quick] [--first] [--sets NAME ...] [--out FOLDER]``; the data folder is named by
STEADYTREE_DATA. ``--first`` and ``--quick`` stay with breast cancer, which needs none. What a part
prints of a set is kept in the output folder, so a stopped run goes on where it was. `results.txt`
holds what was printed.
"""

import argparse
import contextlib
import io
import pathlib
import time
from itertools import islice

import frontier
import regulariser
import sensitivity
import sequence
import shallow
from pictures import (
    answers,
    chosen_tree,
    cloud,
    comparisons,
    four_trees,
    seen_again,
    trade_off,
)

from data import FILES, FIRST, data_sets, finished

STUDIES = {
    "frontier": frontier.study,
    "shallow": shallow.study,
    "sensitivity": sensitivity.study,
    "sequence": sequence.study,
    "regulariser": regulariser.study,
}
QUICK = {
    "frontier": {"n_splits": 2, "n_trees": 12},
    "shallow": {"n_splits": 2, "n_trees": 12},
    "sensitivity": {"n_repeats": 1, "n_moves": 3},
    "sequence": {"n_splits": 1, "n_batches": 3},
    "regulariser": {"n_splits": 1},
}


def main(arguments=None):
    """Run the parts that were asked for, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(STUDIES)}; all")
    parser.add_argument("--quick", action="store_true", help="breast cancer, few splits")
    parser.add_argument("--first", action="store_true", help="breast cancer only")
    parser.add_argument("--sets", nargs="*", choices=(FIRST, *FILES), help="some of the sets")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tree_distance_out"))
    asked = parser.parse_args(arguments)
    unknown = [part for part in asked.parts if part not in STUDIES]
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}: choose some of {', '.join(STUDIES)}")
    results = finished(asked.out / "results.jsonl", {"quick": asked.quick})
    for study in asked.parts or STUDIES:
        for name, X, y in islice(data_sets(asked.sets), 1 if asked.first or asked.quick else None):
            kept = results.find(part=study, set=name)
            if kept is None:
                text = measured(study, name, X, y, asked)
                results.add({"part": study, "set": name, "text": text})
            else:
                seen_again(name, asked.out)
                text = kept["text"]
            print(text, end="", flush=True)


def measured(study, name, X, y, asked):
    """What a part prints of a set, once its figures are drawn."""
    start = time.process_time()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        found = STUDIES[study](name, X, y, **(QUICK[study] if asked.quick else {}))
        print(f"({study}, {name}: {time.process_time() - start:.0f} s CPU)")
    if study == "frontier":
        trade_off(found["again"], name, asked.out)
        cloud(found["run"], name, asked.out)
        comparisons(found, name, asked.out)
        chosen_tree(frontier.mean_choice(found["run"]), name, asked.out)
    if study == "shallow":
        four_trees(found, name, asked.out)
    if study == "sensitivity":
        answers(*found, name, asked.out)
    return printed.getvalue()


if __name__ == "__main__":
    main()
