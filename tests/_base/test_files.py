import os
from pathlib import Path

import pytest

from steadytree._base.files import (
    UsedPath,
    check_apart,
    check_can_fill,
    check_can_write,
    write_text_atomically,
)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.txt"
    write_text_atomically(path, "old")
    write_text_atomically(path, "neu: größer\n")
    assert path.read_text("utf-8") == "neu: größer\n"
    assert names_in(tmp_path) == ["a.txt"]


def test_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", "utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_text_atomically(path, "\udc80")
    assert path.read_text("utf-8") == "old"
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("step", ["os.fsync", "pathlib.Path.replace"])
def test_full_disk_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "a.txt"
    path.write_text("old", "utf-8")

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(step, fail)
        with pytest.raises(OSError, match="No space left on device, so nothing was written"):
            write_text_atomically(path, "new")
    assert path.read_text("utf-8") == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_read_only_file_is_refused_as_windows_does_and_nothing_is_left(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old", "utf-8")
    path.chmod(0o444)
    unlink = Path.unlink

    def is_read_only(each):
        return each.exists() and not each.stat().st_mode & 0o200

    def refuse(each, *_):
        if is_read_only(path if each.suffix == ".part" and _ else each):
            raise PermissionError(13, "Access is denied", str(each))
        return unlink(each)

    monkeypatch.setattr(Path, "replace", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(PermissionError, match="Access is denied, so nothing was written"):
        write_text_atomically(path, "new")
    assert path.read_text("utf-8") == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_link_stays_a_link(tmp_path):
    (tmp_path / "real.txt").write_text("old", "utf-8")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_text_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text("utf-8") == "new"


def test_rights_of_the_old_file_stay(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old", "utf-8")
    path.chmod(0o640)
    write_text_atomically(path, "new")
    assert path.stat().st_mode & 0o777 == 0o640


def test_unwritable_places_are_named(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    for path, kind in [
        (tmp_path, IsADirectoryError),
        (tmp_path / "none" / "a.txt", FileNotFoundError),
        (tmp_path / "file" / "a.txt", NotADirectoryError),
        ("/dev/null", OSError),
    ]:
        with pytest.raises(kind, match="cannot write"):
            check_can_write(path)


def test_looking_whether_a_place_can_be_written_leaves_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("old", "utf-8")
    check_can_write(tmp_path / "a.txt")
    check_can_write(tmp_path / "b.txt")
    check_can_fill(tmp_path)
    check_can_fill(tmp_path / "not" / "there")
    assert names_in(tmp_path) == ["a.txt"]
    assert (tmp_path / "a.txt").read_text("utf-8") == "old"


def test_folders_that_cannot_be_filled_are_named(tmp_path):
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(NotADirectoryError, match="is a file, not a folder"):
        check_can_fill(tmp_path / "file" / "below")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
@pytest.mark.parametrize("check", [check_can_write, check_can_fill])
def test_a_folder_that_takes_no_files_is_named_whoever_asks(check):
    with pytest.raises(OSError, match=r"no file can be made in its folder|may not be written"):
        check("/proc/a.html")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_folder_without_rights_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="may not be written"):
        check_can_write(tmp_path / "a.txt")


def test_a_missing_folder_is_to_be_made_first():
    message = r"^cannot write 'no/such/report.html': make its folder first\.$"
    with pytest.raises(FileNotFoundError, match=message):
        check_can_write("no/such/report.html")


def test_a_file_that_is_read_is_not_written():
    message = (
        r"^--out is './a.csv', which DATA reads: name another file, so that nothing is lost\.$"
    )
    with pytest.raises(ValueError, match=message):
        check_apart([UsedPath("a.csv", "read", "DATA"), UsedPath("./a.csv", "write", "--out")])
