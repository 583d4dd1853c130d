"""One peer on the splits of `accuracy.py`, in an environment of its own; prints csv rows.

    python peers.py DATA_FOLDER PEER [--sets adult,bank] [--splits 10] [--first 0]
    python peers.py FILES.csv table

PEER is `diffprivlib` (needs scikit-learn below 1.6), `dp-ebm` (interpret), `cart`, which is not
private, or `steadytree`. Two variants: `diffprivlib-codes` gets categories as numbers instead of
one column each, `dp-ebm-0.2` a learning rate of 0.2 instead of 0.01. It imports pandas,
scikit-learn and the peer only. Ranges, categories and classes are given to each peer as public.
Adult is all 48,842 rows. `table` makes one table of the rows that were printed.
"""

import argparse
import pathlib
import time

import numpy as np
import pandas as pd

EPSILONS = (0.1, 0.5, 1.0, 2.0, 8.0)
DELTA = 1e-5


def read(folder, name):
    files = ["adult", "adult_test"] if name == "adult" else [name]
    frame = pd.concat([pd.read_csv(folder / f"{f}.csv.gz") for f in files], ignore_index=True)
    return frame, frame.pop("target").to_numpy()


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
        X[name] = frame[name].fillna("missing").astype(str)
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


PEERS = {
    "diffprivlib": diffprivlib_tree,
    "diffprivlib-codes": diffprivlib_codes,
    "dp-ebm": dp_ebm,
    "dp-ebm-0.2": dp_ebm_fast,
    "cart": cart,
    "steadytree": steadytree,
}


def run(options):
    for name in options.sets.split(","):
        frame, y = read(options.data[0], name)
        y = np.unique(y, return_inverse=True)[1]
        for epsilon in EPSILONS if options.peer != "cart" else (np.inf,):
            for seed in range(options.first, options.first + options.splits):
                order, n_train = np.random.default_rng(seed).permutation(len(y)), int(0.8 * len(y))
                start = time.process_time()
                X, fit = PEERS[options.peer](frame, y, epsilon, seed)
                model = fit(order[:n_train])
                taken, test = time.process_time() - start, order[n_train:]
                rows = X.iloc[test] if hasattr(X, "iloc") else X[test]
                accuracy = 100 * float((model.predict(rows) == y[test]).mean())
                print(name, options.peer, epsilon, seed, f"{accuracy:.3f}", f"{taken:.2f}",
                      sep=",", flush=True)  # fmt: skip


def table(paths):
    """Means and standard errors of all rows of csv files, as a table in Markdown."""
    columns = ["set", "learner", "epsilon", "seed", "accuracy", "seconds"]
    rows = pd.concat([pd.read_csv(path, names=columns) for path in paths])
    rows = rows.drop_duplicates(columns[:4])
    found = rows.groupby(columns[:3], sort=False)["accuracy"].agg(["mean", "sem", "count"])
    print("| set | learner | splits |", *(f"{epsilon:g} |" for epsilon in EPSILONS))
    print("| --- | --- | --- |", *("--- |" for _ in EPSILONS))
    found = dict(zip(found.index, found.to_numpy(), strict=True))
    places = {name: place for place, name in enumerate(dict.fromkeys(key[0] for key in found))}
    pairs = dict.fromkeys(key[:2] for key in found)
    for name, learner in sorted(pairs, key=lambda pair: places[pair[0]]):
        # where there is no epsilon, the last column
        own = {min(key[2], EPSILONS[-1]): found[key] for key in found if key[:2] == (name, learner)}
        cells = [f"{own[e][0]:.2f} ± {own[e][1]:.2f} |" if e in own else "|" for e in EPSILONS]
        print(f"| {name} | {learner} | {min(value[2] for value in own.values()):.0f} |", *cells)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, nargs="+")
    parser.add_argument("peer", choices=[*PEERS, "table"])
    parser.add_argument("--sets", default="adult,bank,mushroom,breastcancer_sep")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    if options.peer == "table":
        table(options.data)
    else:
        run(options)


if __name__ == "__main__":
    main()
