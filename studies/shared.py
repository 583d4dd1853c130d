"""What the studies of papers share: a file of finished cells, and sets that few people have."""

import pathlib

from steadytree.reporting.study import Results


def finished(path, settings):
    """Finished cells of these settings; others end the study with one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return Results(path, settings)
    except ValueError as error:
        raise SystemExit(str(error)) from None


def read_set(folder, file, n_columns, about, n_rows=None):
    """A set, its label in `target`; None, and a line on what is expected, where it is not there."""
    import pandas as pd

    path = pathlib.Path(folder) / f"{file}.csv.gz"
    expected = f"{n_columns} columns ({about}) and the label in `target`"
    if not path.exists():
        print(f"left out: {path.name} is not in the data folder; expected are {expected}.")
        return None
    frame = pd.read_csv(path, nrows=n_rows)
    if "target" not in frame or frame.shape[1] != n_columns + 1:
        found = ", ".join(map(str, frame.columns[:6]))
        raise SystemExit(
            f"{path}: expected are {expected}; it has {frame.shape[1]} columns, first {found}."
        )
    return frame
