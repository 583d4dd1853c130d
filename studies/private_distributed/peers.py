"""Accuracy of a learner on seeded splits of all sets, beside peers; rows of csv, and one table.

    python peers.py DATA_FOLDER LEARNER --keep FILES.csv [--sets adult,bank] [--splits 5]
    python peers.py FILES.csv table

LEARNER is `steadytree`; `four-holders`, among which rows are shared out by chance, `four-unlike`
(shares of each class drawn by Dirichlet 0.5), `four-sums` (secure sums, delta 1e-6); or a peer in
an environment of its own: `diffprivlib` (needs scikit-learn below 1.6), `dp-ebm` (interpret),
`cart`, which is not private. Two variants: `diffprivlib-codes` gets categories as numbers instead
of one column each, `dp-ebm-0.2` a learning rate of 0.2 instead of 0.01. Ranges, categories and
classes are given to each as public. By default all sets but test parts and 0/1 forms of another
set, at most 20,000 rows of each. With `--keep` a run goes on where it was stopped.
"""

import argparse
import pathlib
import time

import numpy as np
import pandas as pd

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = 1e-5


def read(folder, name, most_rows):
    files = ["adult", "adult_test"] if name == "adult" else [name]
    frame = pd.concat([pd.read_csv(folder / f"{f}.csv.gz") for f in files], ignore_index=True)
    if len(frame) > most_rows:
        frame = frame.sample(most_rows, random_state=0, ignore_index=True)
    return frame, frame.pop("target").to_numpy()


def all_sets(folder):
    names = (path.name.removesuffix(".csv.gz") for path in sorted(folder.glob("*.csv.gz")))
    return [name for name in names if not name.endswith(("_test", "_enc"))]


def one_hot(frame):
    numeric = frame.select_dtypes("number")
    others = frame.drop(columns=numeric.columns).fillna("missing").astype(str)
    hot = pd.get_dummies(others) if others.shape[1] else others
    return pd.concat([numeric.fillna(numeric.min()), hot], axis=1).to_numpy(np.float64)


def as_codes(frame):
    numeric = frame.select_dtypes("number")
    columns = [
        numeric[name].fillna(numeric[name].min()) if name in numeric else pd.factorize(column)[0]
        for name, column in frame.items()
    ]
    return np.column_stack(columns).astype(np.float64)


def diffprivlib_codes(frame, y, epsilon, seed):
    return diffprivlib_tree(frame, y, epsilon, seed, as_codes)


def diffprivlib_tree(frame, y, epsilon, seed, read_columns=one_hot):
    from diffprivlib.models import DecisionTreeClassifier

    X = read_columns(frame)
    bounds = (X.min(axis=0), np.maximum(X.max(axis=0), X.min(axis=0) + 1e-9))

    def fit(train):
        model = DecisionTreeClassifier(
            epsilon=epsilon, bounds=bounds, classes=np.unique(y), max_depth=5, random_state=seed
        )
        return model.fit(X[train], y[train])

    return X, fit


def dp_ebm_fast(frame, y, epsilon, seed):
    return dp_ebm(frame, y, epsilon, seed, learning_rate=0.2)


def dp_ebm(frame, y, epsilon, seed, **more):
    from interpret.privacy import DPExplainableBoostingClassifier

    numeric = frame.select_dtypes("number").columns
    X = frame.copy()
    for name in frame.columns.difference(numeric):
        X[name] = frame[name].fillna("missing").astype(str).astype(object)
    kinds = ["continuous" if name in numeric else "nominal" for name in frame]
    bounds = {name: (float(frame[name].min()), float(frame[name].max())) for name in numeric}

    def fit(train):
        model = DPExplainableBoostingClassifier(
            feature_types=kinds, epsilon=epsilon, delta=DELTA, privacy_bounds=bounds,
            random_state=seed, n_jobs=1, **more,
        )  # fmt: skip
        return model.fit(X.iloc[train], y[train])

    return X, fit


def cart(frame, y, epsilon, seed):
    from sklearn.tree import DecisionTreeClassifier

    X = one_hot(frame)
    return X, lambda train: DecisionTreeClassifier(max_depth=6, random_state=seed).fit(
        X[train], y[train]
    )


def steadytree(frame, y, epsilon, seed):
    from common import public_schema

    from steadytree.privacy.private_tree import PrivateTreeClassifier

    schema = public_schema(frame, y)

    def fit(train):
        model = PrivateTreeClassifier(epsilon, schema, testing_seed=seed)
        return model.fit(frame.iloc[train], y[train])

    return frame, fit


def four_holders(frame, y, epsilon, seed, method="delegate", **more):
    from common import public_schema, several

    make = several(public_schema(frame, y), epsilon, method, **more)
    return frame, lambda train: make(frame.iloc[train], y[train], seed)


def four_unlike(frame, y, epsilon, seed):
    return four_holders(frame, y, epsilon, seed, skew=0.5)


def four_sums(frame, y, epsilon, seed):
    return four_holders(frame, y, epsilon, seed, "secure_sum", delta=1e-6)


LEARNERS = {
    "steadytree": steadytree,
    "four-holders": four_holders,
    "four-unlike": four_unlike,
    "four-sums": four_sums,
    "diffprivlib": diffprivlib_tree,
    "diffprivlib-codes": diffprivlib_codes,
    "dp-ebm": dp_ebm,
    "dp-ebm-0.2": dp_ebm_fast,
    "cart": cart,
}


def run(options):
    folder, learner = options.data[0], options.learner
    lines = options.keep.read_text().splitlines() if options.keep.exists() else []
    done = {tuple(line.split(",")[:4]) for line in lines}
    epsilons = options.epsilons if learner != "cart" else [np.inf]
    seeds = range(options.first, options.first + options.splits)
    for name in options.sets.split(",") if options.sets else all_sets(folder):
        cells = [(name, learner, str(e), str(seed)) for e in epsilons for seed in seeds]
        if done.issuperset(cells):
            continue
        frame, y = read(folder, name, options.most_rows)
        y = np.unique(y, return_inverse=True)[1]
        for cell in (cell for cell in cells if cell not in done):
            seed, n_train = int(cell[3]), int(0.8 * len(y))
            order = np.random.default_rng(seed).permutation(len(y))
            start = time.process_time()
            try:
                X, fit = LEARNERS[learner](frame, y, float(cell[2]), seed)
                model = fit(order[:n_train])
            except ValueError as error:  # a learner may take two classes only
                print(name, learner, f"left out: {error}".splitlines()[0], flush=True)
                break
            taken, test = time.process_time() - start, order[n_train:]
            rows = X.iloc[test] if hasattr(X, "iloc") else X[test]
            accuracy = 100 * float((model.predict(rows) == y[test]).mean())
            with options.keep.open("a") as file:
                print(*cell, f"{accuracy:.3f}", f"{taken:.2f}", sep=",", file=file)


def table(paths, epsilons):
    """Means and standard errors of all rows of csv files, as a table in Markdown."""
    columns = ["set", "learner", "epsilon", "seed", "accuracy", "seconds"]
    rows = pd.concat([pd.read_csv(path, names=columns) for path in paths])
    rows = rows.drop_duplicates(columns[:4])
    found = rows.groupby(columns[:3], sort=False)["accuracy"].agg(["mean", "sem", "count"])
    print("| set | learner | splits |", *(f"{epsilon:g} |" for epsilon in epsilons))
    print("| --- | --- | --- |", *("--- |" for _ in epsilons))
    found = dict(zip(found.index, found.to_numpy(), strict=True))
    places = {name: place for place, name in enumerate(dict.fromkeys(key[0] for key in found))}
    pairs = dict.fromkeys(key[:2] for key in found)
    for name, learner in sorted(pairs, key=lambda pair: places[pair[0]]):
        # where there is no epsilon, the last column
        own = {min(key[2], epsilons[-1]): found[key] for key in found if key[:2] == (name, learner)}
        cells = [f"{own[e][0]:.2f} ± {own[e][1]:.2f} |" if e in own else "|" for e in epsilons]
        print(f"| {name} | {learner} | {min(value[2] for value in own.values()):.0f} |", *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, nargs="+")
    parser.add_argument("learner", choices=[*LEARNERS, "table"])
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("accuracy.csv"))
    parser.add_argument("--sets", default="")
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--most-rows", type=int, default=20_000)
    options = parser.parse_args()
    if options.learner == "table":
        table(options.data, options.epsilons)
    else:
        run(options)


if __name__ == "__main__":
    main()
