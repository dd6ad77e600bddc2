"""Writing rendered files: only what differs, in one step, and never over a file of the site's own."""

import os
import stat
from pathlib import Path

import pytest

from slurm_sns.errors import BadInput, SnsError
from slurm_sns.render.files import differing, write
from slurm_sns.render.texts import MARK

TEXTS = {"b.conf": f"# Generated {MARK}.\nb=1\n", "a.conf": f"# Generated {MARK}.\na=1\n"}


def test_a_missing_directory_is_made_and_filled(tmp_path: Path) -> None:
    assert write(tmp_path / "new", TEXTS) == ["a.conf", "b.conf"]
    assert {path.name: path.read_text() for path in (tmp_path / "new").iterdir()} == TEXTS


def test_files_are_readable_for_all_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write(tmp_path, TEXTS)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.conf").stat().st_mode) == 0o644


def test_a_file_that_is_right_is_not_touched(tmp_path: Path) -> None:
    write(tmp_path, TEXTS)
    before = (tmp_path / "a.conf").stat()
    (tmp_path / "b.conf").write_text(TEXTS["b.conf"] + "b=2\n")
    assert write(tmp_path, TEXTS) == ["b.conf"]
    after = (tmp_path / "a.conf").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_only_looking_changes_nothing(tmp_path: Path) -> None:
    assert differing(tmp_path / "new", TEXTS) == ["a.conf", "b.conf"]
    assert not (tmp_path / "new").exists()


def test_no_draft_is_left_behind(tmp_path: Path) -> None:
    write(tmp_path, TEXTS)
    write(tmp_path, {name: text + "more=1\n" for name, text in TEXTS.items()})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.conf", "b.conf"]


def test_a_file_of_the_site_stays_and_nothing_else_is_written(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("ClusterName=site\n")
    with pytest.raises(BadInput, match=r"b\.conf was not written by sns render and stays"):
        write(tmp_path, TEXTS)
    assert [path.name for path in tmp_path.iterdir()] == ["b.conf"]
    assert (tmp_path / "b.conf").read_text() == "ClusterName=site\n"


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text(TEXTS["a.conf"] + "old=1\n")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "a.conf").symlink_to(target)
    write(tmp_path / "etc", TEXTS)
    assert not (tmp_path / "etc" / "a.conf").is_symlink()
    assert target.read_text() == TEXTS["a.conf"] + "old=1\n"


def test_a_target_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="is not a directory; valid: a directory"):
        write(tmp_path / "file", TEXTS)


def test_a_directory_in_a_files_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.conf").mkdir()
    with pytest.raises(BadInput, match=r"a\.conf is a directory"):
        write(tmp_path, TEXTS)


def test_a_directory_without_its_parent_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SnsError, match="cannot be written: No such file or directory"):
        write(tmp_path / "a" / "b", TEXTS)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, mocker) -> None:
    write(tmp_path, TEXTS)
    mocker.patch("slurm_sns.render.files.os.fsync", side_effect=OSError(28, "No space left on device"))
    with pytest.raises(SnsError, match="cannot be written: No space left on device"):
        write(tmp_path, {name: text + "more=1\n" for name, text in TEXTS.items()})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == TEXTS


SCRIPT = {"prolog": f"#!/bin/sh\n# Generated {MARK}.\nexit 0\n"}


def test_a_script_can_be_run_and_is_recognised_by_its_second_line(tmp_path: Path) -> None:
    assert write(tmp_path, SCRIPT) == ["prolog"]
    assert stat.S_IMODE((tmp_path / "prolog").stat().st_mode) == 0o755
    assert differing(tmp_path, SCRIPT) == []
    (tmp_path / "prolog").chmod(0o644)
    assert write(tmp_path, SCRIPT) == ["prolog"], "a script that cannot be run differs"
    assert stat.S_IMODE((tmp_path / "prolog").stat().st_mode) == 0o755


def test_a_script_of_the_site_stays(tmp_path: Path) -> None:
    (tmp_path / "prolog").write_text("#!/bin/sh\necho ours\n")
    with pytest.raises(BadInput, match="prolog was not written by sns render and stays"):
        write(tmp_path, SCRIPT)


def test_the_second_line_of_another_file_is_no_sign(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text(f"ours\n# Generated {MARK}.\n")
    with pytest.raises(BadInput, match=r"a\.conf was not written by sns render and stays"):
        write(tmp_path, TEXTS)
