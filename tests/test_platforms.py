"""What holds on other systems: every text file names its encoding, and no call is of one system."""

import ast
import functools
import pathlib

PROJECT = pathlib.Path(__file__).parents[1]
SOURCES = sorted((PROJECT / "src").rglob("*.py"))
TESTS = sorted(path for name in ("tests", "tools") for path in (PROJECT / name).rglob("*.py"))
# asked for by hasattr or sys.platform beside the call, or in a module that is not used elsewhere
OF_ONE_SYSTEM = {"getuid", "geteuid", "fork", "flock", "setsid", "killpg", "AF_UNIX", "SIGKILL"}


@functools.cache
def nodes_of(path):
    return list(ast.walk(ast.parse(path.read_text("utf-8"))))


def calls_of(path):
    for node in nodes_of(path):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            yield name, node


def opens_text_without_encoding(name, call):
    """Whether a call opens a text file in whatever encoding the system has."""
    if name in ("read_text", "write_text"):
        own = 1 if name == "read_text" else 2
        return len(call.args) < own and not any(k.arg == "encoding" for k in call.keywords)
    if name != "open" or getattr(getattr(call.func, "value", None), "id", "") in (
        "os",
        "webbrowser",
        "browser",
    ):
        return False
    position = 0 if isinstance(call.func, ast.Attribute) else 1
    modes = [k.value for k in call.keywords if k.arg == "mode"] + call.args[position : position + 1]
    mode = modes[0].value if modes and isinstance(modes[0], ast.Constant) else "r"
    if not isinstance(mode, str) or not set(mode) <= set("rwxabt+"):
        return False  # another method of this name
    return "b" not in mode and not any(k.arg == "encoding" for k in call.keywords)


def test_every_text_file_names_its_encoding():
    found = [
        f"{path.relative_to(PROJECT)}:{call.lineno}"
        for path in (*SOURCES, *TESTS)
        for name, call in calls_of(path)
        if opens_text_without_encoding(name, call)
    ]
    known = {"DataSet.open", "beside.open"}  # no file of text, or an empty one
    wrong = [place for place in found if not any(word in line_of(place) for word in known)]
    assert not wrong


def line_of(place):
    path, _, line = place.rpartition(":")
    return (PROJECT / path).read_text("utf-8").splitlines()[int(line) - 1]


def test_calls_of_one_system_are_asked_for_first():
    found = {}
    for path in SOURCES:
        names = {
            node.attr
            for node in nodes_of(path)
            if isinstance(node, ast.Attribute) and node.attr in OF_ONE_SYSTEM
        }
        if names:
            found[path.relative_to(PROJECT / "src/steadytree").as_posix()] = names
    # behind a Unix socket, without which an OSError was raised before
    found.pop("federated/flower/supernode.py")
    for name in found:
        text = (PROJECT / "src/steadytree" / name).read_text("utf-8")
        assert "hasattr(" in text or "sys.platform" in text or "os.name" in text, (
            name,
            found[name],
        )


def test_bytes_written_through_a_handle_stay_as_they_are():
    """Windows writes a line end of one sign as two where a file is not opened as binary."""
    writes = {"O_WRONLY", "O_RDWR"}
    for path in SOURCES:
        lines = path.read_text("utf-8").splitlines()
        for node in nodes_of(path):
            if not isinstance(node, ast.Attribute) or node.attr not in writes:
                continue
            near = "\n".join(lines[node.lineno - 3 : node.lineno + 2])
            assert "O_BINARY" in near or "devnull" in near, f"{path}:{node.lineno}"


def test_names_of_files_beside_stay_short():
    """Windows allows 260 signs in a path, and Linux 255 bytes in a name."""
    from steadytree._base.files import _beside

    for name in ("a" * 255, "ä" * 127, "\U0001f600" * 63, "x.csv"):
        assert len(_beside(pathlib.Path(name)).name.encode("utf-8")) <= 255
