"""CPU seconds of private fits after compilation, with secure noise, beside what was aimed at.

    python studies/private_distributed/timing.py DATA_FOLDER [--repeats 5]

One process, one thread: Adult (32,561 x 14) at depth 4 and Skin (245,057 x 3), epsilon 1. Reading
the file is left out, reading the rows through the schema is not.
"""

import argparse
import pathlib
import time

from common import public_schema, read

from steadytree.privacy.private_tree import PrivateTreeClassifier

CASES = (  # set, method, parameters, aim in seconds
    ("adult", "gibbs", {"max_depth": 4}, 3.0),
    ("adult", "greedy", {"max_depth": 4}, 0.3),
    ("adult", "topdown", {}, None),
    ("skin", "gibbs", {}, 10.0),
    ("skin", "greedy", {}, 10.0),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'set':6} {'rows':>7} {'method':8} {'aim':>5} {'fastest':>8} {'slowest':>8}")
    loaded = {}
    for name, method, more, aim in CASES:
        if name not in loaded:
            loaded[name] = read(options.data, name)
        frame, y = loaded[name]
        model = PrivateTreeClassifier(1.0, public_schema(frame, y), method, **more)
        model.fit(frame[:3_000], y[:3_000])  # compiles
        found = []
        for _ in range(options.repeats):
            start = time.process_time()
            model.fit(frame, y)
            found.append(time.process_time() - start)
        shown = "-" if aim is None else f"{aim:g}"
        print(f"{name:6} {len(y):>7,} {method:8} {shown:>5} {min(found):>8.2f} {max(found):>8.2f}",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
