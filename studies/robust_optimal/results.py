"""Results as lines of JSON: a run that was stopped goes on where it was."""

import json
import pathlib

from steadytree.core.atomic import write_text_atomically


class Results:
    """Finished cells in a file; each is written as soon as it is known, whole or not at all."""

    def __init__(self, path):
        self._path = pathlib.Path(path)
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self.cells = [json.loads(line) for line in lines]

    def find(self, **asked):
        """The first cell with these values, or None."""
        return next((cell for cell in self.cells if asked.items() <= cell.items()), None)

    def add(self, cell):
        """Keep a cell."""
        self.cells.append(cell)
        text = "".join(json.dumps(each) + "\n" for each in self.cells)
        write_text_atomically(self._path, text)
