"""Numbers as aligned text."""

import numpy as np


def show(title, head, rows):
    """Print a table; numbers are rounded, pairs are mean and deviation."""
    cells = [list(head), *([_cell(part) for part in row] for row in rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    print(f"\n{title}")
    for row in cells:
        first = row[0].ljust(widths[0])
        rest = [part.rjust(width) for part, width in zip(row[1:], widths[1:], strict=True)]
        print("  ".join([first, *rest]).rstrip(), flush=True)


def spread(values):
    return float(np.mean(values)), float(np.std(values))


def _cell(part):
    if isinstance(part, tuple):
        return f"{part[0]:.3f} ({part[1]:.3f})"
    return part if isinstance(part, str) else f"{part:.3f}"
