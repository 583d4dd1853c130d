"""Rows that a tree keeps by dtai-veritas: a tree and boxes in, rows and seconds out, as JSON.

A split asks whether the cell of a column is at most k; a box is a first and a last cell by column.
"""

import json
import sys
import time

import veritas

INSIDE = 0.25  # of a cell


def trees_against(tree, label):
    """The tree as a sum that is above 0 in leaves of other labels."""
    at = veritas.AddTree(1, veritas.AddTreeType.REGR)
    grown = at.add_tree()
    waiting = [(grown.root(), tree)]
    while waiting:
        place, node = waiting.pop()
        if not isinstance(node, list):
            grown.set_leaf_value(place, 0, -1.0 if node == label else 1.0)
            continue
        column, k, left, right = node
        grown.split(place, column, k + 0.5)
        waiting += [(grown.left(place), left), (grown.right(place), right)]
    return at


def keeps(at, box):
    config = veritas.Config(veritas.HeuristicType.MAX_OUTPUT)
    config.ignore_state_when_worse_than = 0.0
    config.stop_when_num_solutions_exceeds = 1
    config.stop_when_optimal = False
    inside = [veritas.Interval(low - INSIDE, high + INSIDE) for low, high in box]
    search = config.get_search(at, inside)
    while search.steps(1000) != veritas.StopReason.NO_MORE_OPEN:
        if search.num_solutions() > 0:
            break
    return search.num_solutions() == 0


def main():
    work = json.load(sys.stdin)
    start = time.process_time()
    against = {label: trees_against(work["tree"], label) for label in set(work["y"])}
    pairs = zip(work["boxes"], work["y"], strict=True)
    kept = sum(keeps(against[label], box) for box, label in pairs)
    print(json.dumps({"kept": kept, "proven": True, "seconds": time.process_time() - start}))


if __name__ == "__main__":
    main()
