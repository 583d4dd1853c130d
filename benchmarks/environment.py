"""Where a contender runs: here, or in an environment of its own when its pins clash with ours."""

import functools
import json
import pathlib
import shutil
import subprocess
import sys
import venv

FOLDER = pathlib.Path(__file__).parent / ".venvs"


def python_for(name, requirements):
    """Path of an interpreter that has the requirements; () means the one that runs now."""
    if not requirements:
        return sys.executable
    folder = FOLDER / name
    stamp = folder / "requirements.json"
    wanted = json.dumps(sorted({"numpy", *requirements}))
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        _install(folder, json.loads(wanted))
        stamp.write_text(wanted)
    return str(_interpreter(folder))


def ask(script, name, requirements, path, begin="{"):
    """What a script's process in that environment makes of a file: one line of JSON.

    The process stays open: imports, and what packages compile, take longer than a fit.
    """
    process = _worker(str(script), name, requirements)
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    for line in process.stdout:
        if line.startswith(begin):  # packages print lines of their own
            return json.loads(line)
    raise RuntimeError(f"the process of {name} ended with {process.wait()}; see what it wrote.")


@functools.cache
def _worker(script, name, requirements):
    command = [python_for(name.replace(" ", "-"), requirements), script, name]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return subprocess.Popen(command, text=True, **pipes)


def _install(folder, requirements):
    sys.stderr.write(f"making an environment for {folder.name}\n")
    venv.create(folder, with_pip=True)
    pip = [_interpreter(folder), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *requirements], check=True)


def _interpreter(folder):
    return folder / "bin/python"
