"""The help of every command and sub-command, at a width of 80."""

import re

import pytest
import typer

# earlier ones, which the extra `federated` still asks for, write the same help in another form
FORMAT_OF = (0, 25)


def helps(command, words=()):
    """Help by what is typed to get there; sub-commands are read off the help itself."""
    code, out, err = command(*words, "--help")
    assert (code, err) == (0, "")
    found = {" ".join(("steadytree", *words)): out}
    _, _, listed = out.partition("\nCommands:\n")
    for name in re.findall(r"^  ([a-z][a-z-]*)(?: |$)", listed, re.M):
        found |= helps(command, (*words, name))
    return found


def test_help_of_every_command(command, golden):
    found = helps(command)
    assert len(found) > 20
    listed = [text.partition("\nCommands:\n")[2].partition("\n\n")[0] for text in found.values()]
    assert not [line for text in listed for line in text.splitlines() if line.endswith("...")]
    if tuple(map(int, typer.__version__.split(".")[:2])) < FORMAT_OF:
        pytest.skip(f"typer {typer.__version__} formats help in another way")
    golden("help.txt", "\n".join(f"$ {name} --help\n{text}" for name, text in found.items()))
