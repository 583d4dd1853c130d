"""What steadytree is made of: a list of all dependencies with versions and licences (CycloneDX).

    python tools/supply.py --out build/sbom.json
    python tools/supply.py --same-wheel     # builds the wheel twice and compares the bytes

The list is read off the installed packages, without a network. It ends with 1 where a licence is
none of those that go with BSD-3-Clause, so that a new dependency is looked at before it is kept.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import uuid
from importlib import metadata

PROJECT = pathlib.Path(__file__).parents[1]
PERMISSIVE = (
    "bsd",
    "mit",
    "apache",
    "psf",
    "python software foundation",
    "isc",
    "zlib",
    "unlicense",
    "mpl-2.0",
    "mozilla",
    "0bsd",
    "cc0",
)


def name_of(requirement):
    return re.split(r"[\s\[<>=!~;(]", requirement.strip(), maxsplit=1)[0].lower().replace("_", "-")


def needed(distribution, extras=()):
    """Names of what a package needs, with the chosen extras, on this system."""
    from packaging.requirements import Requirement

    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield name_of(requirement.name), tuple(requirement.extras)


def closure(root, extras=()):
    """Everything that is installed because of a package, itself left out."""
    found, waiting = {}, list(needed(root, extras))
    while waiting:
        name, wanted = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # of another system, or an extra that is not installed
        waiting += needed(found[name], wanted)
    return dict(sorted(found.items()))


def licence_of(distribution):
    """The licence as the package states it: expression, classifiers, or field."""
    about = distribution.metadata
    lines = [line for line in about.get_all("Classifier") or () if "License ::" in line]
    stated = [about.get("License-Expression"), *(line.rpartition("::")[2] for line in lines)]
    stated.append(about.get("License"))
    texts = [text.strip() for text in stated if text and text.strip() not in ("", "UNKNOWN")]
    return texts[0].splitlines()[0][:80] if texts else ""


def is_permissive(licence):
    return any(word in licence.lower() for word in PERMISSIVE)


def sbom(version, distributions):
    """A CycloneDX 1.5 document; its number follows from its content, so it can be repeated."""
    components = [
        {
            "type": "library",
            "name": name,
            "version": one.version,
            "purl": f"pkg:pypi/{name}@{one.version}",
            "licenses": [{"license": {"name": licence_of(one) or "not stated"}}],
        }
        for name, one in distributions.items()
    ]
    digest = hashlib.sha256(json.dumps(components, sort_keys=True).encode()).hexdigest()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32])}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": "steadytree",
                "version": version,
                "purl": f"pkg:pypi/steadytree@{version}",
            }
        },
        "components": components,
    }


def build(folder):
    """A wheel with the time of the last commit as the time of its files; returns its hash."""
    times = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    environment = os.environ | {"SOURCE_DATE_EPOCH": times.stdout.strip()}
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        folder,
        str(PROJECT),
    ]
    subprocess.run(command, env=environment, check=True)
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    return wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()


def same_wheel():
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        wheels = build(one), build(other)
    sys.stdout.write("".join(f"{digest}  {name}\n" for name, digest in wheels))
    return 0 if wheels[0] == wheels[1] else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=PROJECT / "build/sbom.json")
    parser.add_argument("--same-wheel", action="store_true")
    given = parser.parse_args()
    if given.same_wheel:
        sys.exit(same_wheel())
    root = metadata.distribution("steadytree")
    found = closure(root)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sbom(root.version, found), indent=1, ensure_ascii=False)
    given.out.write_text(text + "\n", encoding="utf-8")
    other = [
        f"{name}: {licence_of(one) or 'not stated'}"
        for name, one in found.items()
        if not is_permissive(licence_of(one))
    ]
    for name, one in found.items():
        sys.stdout.write(f"{name:20} {one.version:12} {licence_of(one)}\n")
    sys.stdout.write(f"written: {given.out}\n" + "".join(f"look at {line}\n" for line in other))
    sys.exit(1 if other else 0)


if __name__ == "__main__":
    main()
