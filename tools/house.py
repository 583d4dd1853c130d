"""How large the source is: modules and lines of each package, by kind, and the longest files.

    python tools/house.py                       # prints the table
    python tools/house.py --out docs/house.txt  # as the page on architecture includes it

tests/test_architecture.py compares the file with the source.
"""

import argparse
import ast
import io
import pathlib
import tokenize

ROOT = pathlib.Path(__file__).parents[1] / "src/steadytree"
KINDS = ("code", "docstrings", "comments", "blank")
N_LONGEST = 10
LAYOUT = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def count_lines(text: str) -> dict[str, int]:
    """Lines of a module by kind; a line of code with a comment behind it is code."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            docstrings |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code, comments = set(), set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            comments |= set(lines)
        elif token.type not in LAYOUT:
            code |= set(lines)
    code -= docstrings
    sizes = {"code": len(code), "docstrings": len(docstrings), "comments": len(comments - code)}
    return sizes | {"blank": len(text.splitlines()) - sum(sizes.values())}


def packages() -> dict[str, list[pathlib.Path]]:
    """Modules of each package, `__init__` included; those beside the packages are "(top)"."""
    found: dict[str, list[pathlib.Path]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).parts
        found.setdefault(parts[0] if len(parts) > 1 else "(top)", []).append(path)
    return found


def house() -> dict[str, list[int]]:
    """Of each package and in all: modules, lines, and lines of each kind."""
    table = {}
    for name, paths in packages().items():
        sizes = [count_lines(path.read_text("utf-8")) for path in paths]
        kinds = [sum(size[kind] for size in sizes) for kind in KINDS]
        table[name] = [len(paths), sum(kinds), *kinds]
    return table | {"all": [sum(column) for column in zip(*table.values(), strict=True)]}


def longest() -> list[tuple[str, int]]:
    """The files with the most lines."""
    sizes = {
        str(path.relative_to(ROOT)): len(path.read_text("utf-8").splitlines())
        for paths in packages().values()
        for path in paths
    }
    return sorted(sizes.items(), key=lambda one: (-one[1], one[0]))[:N_LONGEST]


def render() -> str:
    """The table as text."""
    heads = ("package", "modules", "lines", *KINDS)
    lines = [f"{heads[0]:12}" + "".join(f"{head:>12}" for head in heads[1:])]
    for name, row in house().items():
        lines.append(f"{name:12}" + "".join(f"{value:>12,}" for value in row))
    lines += ["", f"The {N_LONGEST} longest files:"]
    lines += [f"{name:44}{n:>4}" for name, n in longest()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, help="file to write instead of printing")
    options = parser.parse_args()
    if options.out is None:
        print(render(), end="")
    else:
        options.out.write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
