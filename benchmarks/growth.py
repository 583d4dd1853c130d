"""How does the CPU time of a fit grow with rows, columns, classes, depth and categories?

Each is raised from a base of 50,000 rows of 20 numbers, two classes and depth 6; of three fits the
least time counts. Prints times and the exponent between the first and the last, and draws
them: time against factor, both as logarithms, beside a line of exponent 1.

    python benchmarks/growth.py --out growth.json --picture growth.svg   # about five minutes
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np

BASE = {"rows": 50_000, "columns": 20, "classes": 2, "depth": 6, "categories": 0}
STEPS = {
    "rows": [50_000, 100_000, 200_000, 400_000, 800_000, 1_600_000],
    "columns": [20, 40, 80, 160, 320],
    "classes": [2, 4, 8, 16, 32],
    "depth": [3, 6, 9, 12, 15, 18],
    "categories": [8, 16, 32, 64, 128, 256],
}
COLOURS = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b")
WIDTH, HEIGHT, EDGE = 640, 420, 60


def rows_of(rows, columns, classes, depth, categories):
    """Numbers, or categories of which each has a rate of its own; labels with noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, columns))
    score = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(2 * X[:, 3]) + rng.standard_normal(rows)
    if categories:
        X = rng.integers(0, categories, (rows, columns))
        rates = rng.standard_normal((columns, categories))
        score = rates[0, X[:, 0]] + rates[1, X[:, 1]] * rates[2, X[:, 2]]
        score += rng.standard_normal(rows)
    edges = np.quantile(score, np.arange(1, classes) / classes)
    return X, np.searchsorted(edges, score)


def seconds(sizes):
    """CPU seconds of the quickest of three fits."""
    from steadytree import StableTreeClassifier

    X, y = rows_of(**sizes)
    if sizes["categories"]:
        import pandas as pd

        X = pd.DataFrame({f"c{j}": pd.Categorical(X[:, j].astype(str)) for j in range(X.shape[1])})
    model = StableTreeClassifier(max_depth=sizes["depth"], random_state=0)
    taken = []
    for _ in range(3):
        start = time.process_time()
        model.fit(X, y)
        taken.append(time.process_time() - start)
    return min(taken)


def picture(found):
    """Time against factor, both as logarithms, as an SVG."""
    curves = {
        name: [(math.log2(n / points[0][0]), math.log2(t / points[0][1])) for n, t in points]
        for name, points in found.items()
    }
    right = max(x for points in curves.values() for x, _ in points)
    top = max(right, *(y for points in curves.values() for _, y in points))

    def at(x, y):
        across = EDGE + x / right * (WIDTH - 2 * EDGE)
        return f"{across:.1f},{HEIGHT - EDGE - y / top * (HEIGHT - 2 * EDGE):.1f}"

    parts = [f'<polyline points="{at(0, 0)} {at(right, right)}" stroke="#999" fill="none"/>']
    for number, (name, points) in enumerate(curves.items()):
        line, colour = " ".join(at(*point) for point in points), COLOURS[number]
        parts.append(f'<polyline points="{line}" stroke="{colour}" stroke-width="2" fill="none"/>')
        slope = points[-1][1] / points[-1][0]
        parts.append(
            f'<text x="{EDGE + 10}" y="{30 + 18 * number}" fill="{colour}">{name}: '
            f"exponent {slope:.2f}</text>"
        )
    for k in range(int(right) + 1):
        across = at(k, 0).partition(",")[0]
        parts.append(f'<text x="{across}" y="{HEIGHT - EDGE + 20}">x {2**k}</text>')
    parts.append(f'<text x="{EDGE}" y="{HEIGHT - 12}">size, as a factor; grey: exponent 1</text>')
    style = 'font-family="sans-serif" font-size="13"'
    box = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {style}'
    return f"<svg {box}>\n" + "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", help="where to write all times as JSON")
    parser.add_argument("--picture", help="where to write the drawing (SVG)")
    parser.add_argument("--share", type=float, default=1.0, help="of the rows, for a short try")
    given = parser.parse_args()
    found = {}
    for name, sizes in STEPS.items():
        found[name] = []
        for size in sizes:
            chosen = {**BASE, name: size}
            chosen["rows"] = max(int(chosen["rows"] * given.share), 1_000)
            found[name].append((size, seconds(chosen)))
            print(f"{name} {size:,}: {1e3 * found[name][-1][1]:.1f} ms", flush=True)
        (first, before), (last, after) = found[name][0], found[name][-1]
        print(f"  exponent {math.log(after / before) / math.log(last / first):.2f}", flush=True)
    if given.out:
        pathlib.Path(given.out).write_text(json.dumps(found, indent=1) + "\n")
    if given.picture:
        pathlib.Path(given.picture).write_text(picture(found))


if __name__ == "__main__":
    main()
