"""Our groups in the tree: made, written, filled, removed; nothing of others is touched."""

import errno
import fcntl
import os
from pathlib import Path

import pytest
from resctrl_trees import Tree, contents, intel

from slurm_sns.errors import SnsError
from slurm_sns.node.resctrl.groups import CannotMake, DeadTask, Files, GroupGone, Groups, ResctrlError, refusal

MASKS = "L3:0=f0;1=f0\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(intel(tmp_path / "tree"))


@pytest.fixture
def groups(tree: Tree) -> Groups:
    return Groups(tree.root, files=tree)


class Refusing(Files):
    """Refuses one call with an errno; the kernel's words are those in last_cmd_status."""

    def __init__(self, call: str, number: int) -> None:
        self._call, self._number = call, number

    def write(self, path: Path, text: str) -> None:
        self._check("write", path)
        super().write(path, text)

    def make_directory(self, path: Path) -> None:
        self._check("make", path)
        super().make_directory(path)

    def remove_directory(self, path: Path) -> None:
        self._check("remove", path)
        super().remove_directory(path)

    def _check(self, call: str, path: Path) -> None:
        if call == self._call:
            raise OSError(self._number, "refused", str(path))


class TestAGroup:
    def test_it_is_made_under_our_prefix_written_and_read(self, groups: Groups, tree: Tree) -> None:
        assert groups.make("job7")
        groups.write("job7", MASKS)
        assert groups.read("job7") == {"L3": {0: 0xF0, 1: 0xF0}, "MB": {0: 100, 1: 100}}
        assert groups.names() == ("job7",)
        assert tree.changes == ["make sns_job7", "sns_job7 < L3:0=f0;1=f0"]

    def test_one_that_is_there_already_is_used(self, groups: Groups) -> None:
        assert groups.make("job7")
        assert not groups.make("job7")

    def test_it_is_made_in_a_plain_directory_too(self, tmp_path: Path) -> None:
        groups = Groups(intel(tmp_path / "tree"))
        groups.make("job7")
        groups.write("job7", MASKS)
        assert groups.read("job7") == {"L3": {0: 0xF0, 1: 0xF0}}

    def test_each_write_is_one_call_that_replaces_nothing_but_the_text(self, tmp_path: Path) -> None:
        path = tmp_path / "schemata"
        Files().write(path, "L3:0=fffff\n")
        Files().write(path, "L3:0=f\n")
        assert path.read_text() == "L3:0=f\n"

    def test_removing_it_gives_its_threads_to_the_root_group(self, groups: Groups) -> None:
        groups.make("job7")
        groups.move("job7", [1])
        assert groups.root_tasks() == (2,)
        groups.remove("job7")
        assert groups.root_tasks() == (2, 1)

    def test_removing_one_that_is_gone_is_no_error(self, groups: Groups) -> None:
        groups.remove("job7")

    @pytest.mark.parametrize("name", ["", "a/b", "..", "-x", "a\nb", "ä"])
    def test_a_name_that_could_leave_the_tree_is_refused(self, name: str, groups: Groups) -> None:
        with pytest.raises(SnsError, match=r"the name of a group is .*; valid: letters"):
            groups.make(name)


class TestThreads:
    def test_they_are_moved_one_by_one(self, groups: Groups, tree: Tree) -> None:
        groups.make("job7")
        assert groups.move("job7", [1, 2]) == (1, 2)
        assert groups.tasks("job7") == (1, 2)
        assert groups.root_tasks() == ()
        assert tree.changes[1:] == ["sns_job7 < 1", "sns_job7 < 2"]

    def test_one_that_has_ended_is_left_out(self, tree: Tree) -> None:
        class Ended(Tree):
            def write(self, path: Path, text: str) -> None:
                if text == "1\n":
                    raise ProcessLookupError(errno.ESRCH, "dead")
                super().write(path, text)

        groups = Groups(tree.root, files=Ended(tree.root))
        groups.make("job7")
        assert groups.move("job7", [1, 2]) == (2,)

    def test_children_that_were_forked_meanwhile_are_moved_in_the_next_round(self, groups: Groups) -> None:
        groups.make("job7")
        seen = iter([[1], [1, 2], [1, 2]])
        assert groups.move_all("job7", lambda: next(seen)) == 2
        assert groups.tasks("job7") == (1, 2)

    def test_those_that_are_there_are_not_moved_again(self, groups: Groups, tree: Tree) -> None:
        groups.make("job7")
        groups.move("job7", [1])
        before = len(tree.changes)
        assert groups.move_all("job7", lambda: [1]) == 0
        assert len(tree.changes) == before

    def test_a_job_that_forks_for_ever_does_not_keep_us(self, groups: Groups) -> None:
        groups.make("job7")
        threads: list[int] = []

        def forking() -> list[int]:
            threads.append(len(threads) + 1000)
            return threads

        assert groups.move_all("job7", forking) == 10


class TestOthers:
    def test_their_groups_are_named_and_never_ours(self, groups: Groups, tree: Tree) -> None:
        (tree.root / "someone").mkdir()
        (tree.root / "sns").mkdir()
        groups.make("job7")
        assert groups.foreign() == ("sns", "someone")
        assert groups.names() == ("job7",)

    def test_a_clean_up_leaves_everything_of_others(self, groups: Groups, tree: Tree) -> None:
        (tree.root / "someone" / "mon_groups").mkdir(parents=True)
        (tree.root / "someone" / "schemata").write_text("L3:0=3\n")
        before = contents(tree.root)
        for name in ("job7", "shared"):
            groups.make(name)
            groups.write(name, MASKS)
        groups.move("job7", [1])
        assert groups.remove_all() == ("job7", "shared")
        assert sorted(groups.root_tasks()) == [1, 2]
        assert {**contents(tree.root), "tasks": before["tasks"]} == before

    def test_one_group_that_cannot_be_removed_does_not_keep_the_others(self, groups: Groups, tree: Tree) -> None:
        class Stuck(Tree):
            def remove_directory(self, path: Path) -> None:
                if path.name == "sns_a":
                    raise OSError(errno.EBUSY, "busy")
                super().remove_directory(path)

        for name in ("a", "b"):
            groups.make(name)
        with pytest.raises(ResctrlError, match=r"group .*sns_a cannot be removed"):
            Groups(tree.root, files=Stuck(tree.root)).remove_all()
        assert groups.names() == ("a",)

    @pytest.mark.parametrize("mode", ["exclusive", "pseudo-locked"])
    def test_what_they_have_for_themselves_alone_is_known(self, mode: str, groups: Groups, tree: Tree) -> None:
        for name, text in {"mode": mode, "schemata": "L3:0=ff;1=0\n"}.items():
            (tree.root / "someone").mkdir(exist_ok=True)
            (tree.root / "someone" / name).write_text(text)
        groups.make("job7")
        assert groups.unshared() == ({"L3": {0: 0xFF, 1: 0}},)

    def test_a_group_of_theirs_that_vanishes_or_is_half_set_up_has_nothing(self, groups: Groups, tree: Tree) -> None:
        (tree.root / "gone").mkdir()
        (tree.root / "half").mkdir()
        (tree.root / "half" / "mode").write_text("exclusive\n")
        (tree.root / "half" / "schemata").write_text("L3:uninitialized\n")
        assert groups.unshared() == ()


class TestTheLock:
    def test_it_is_the_one_that_other_tools_take(self, groups: Groups, tree: Tree) -> None:
        other = os.open(tree.root, os.O_RDONLY)
        try:
            with groups.lock(), pytest.raises(BlockingIOError):
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with pytest.raises(ResctrlError, match=r"is locked by another program for 0.02 s"), groups.lock(0.02):
                pass
        finally:
            os.close(other)

    def test_it_is_given_back_after_an_error(self, groups: Groups) -> None:
        with pytest.raises(ZeroDivisionError), groups.lock():
            raise ZeroDivisionError
        with groups.lock(timeout_s=0):
            pass

    def test_who_holds_it_may_take_it_again_and_it_ends_with_the_first(self, groups: Groups, tree: Tree) -> None:
        with groups.lock(timeout_s=0):
            with groups.lock(timeout_s=0):
                groups.make("job7")
            groups.move("job7", [1])
            with pytest.raises(ResctrlError), Groups(tree.root).lock(timeout_s=0):
                pass
        with Groups(tree.root).lock(timeout_s=0):
            pass

    def test_it_is_held_while_threads_are_moved_and_groups_are_removed(self, groups: Groups, tree: Tree) -> None:
        groups.make("job7")
        locked: list[bool] = []

        def look(_: int) -> None:
            other = os.open(tree.root, os.O_RDONLY)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked.append(False)
            except BlockingIOError:
                locked.append(True)
            finally:
                os.close(other)

        tree.before = look
        groups.move("job7", [1])
        groups.move_all("job7", lambda: [1, 2])
        groups.remove_all()
        assert locked == [True, True, True]

    def test_a_tree_that_is_gone_cannot_be_locked(self, tmp_path: Path) -> None:
        with pytest.raises(GroupGone, match=r"cannot be locked"), Groups(tmp_path / "none").lock():
            pass


class TestRefusals:
    @pytest.mark.parametrize(
        ("number", "status", "kind"),
        [
            (errno.EINVAL, "Mask out of range", ResctrlError),
            (errno.EINVAL, "The mask f7 has non-consecutive 1-bits", ResctrlError),
            (errno.ENOENT, "", GroupGone),
            (errno.ENODEV, "", GroupGone),
            (errno.ESRCH, "No task 123", DeadTask),
            (errno.EPERM, "No permission to move task 123", ResctrlError),
            (errno.EACCES, "", ResctrlError),
            (errno.EBUSY, "", ResctrlError),
            (errno.ENOSPC, "Out of CLOSIDs", CannotMake),
            (errno.ENOSPC, "out of closids", CannotMake),
            (errno.ENOSPC, "Out of RMIDs", CannotMake),
            (errno.ENOSPC, "No space on L3:0", CannotMake),
            (errno.EBUSY, "Out of RMIDs", CannotMake),
            (errno.EIO, "", ResctrlError),
        ],
    )
    def test_the_kernels_number_and_words_make_the_error(
        self, number: int, status: str, kind: type[ResctrlError]
    ) -> None:
        error = refusal("x cannot be done", OSError(number, "refused"), status)
        assert type(error) is kind
        assert str(error).startswith(f"x cannot be done: {os.strerror(number)}")
        assert status in str(error)

    def test_ok_beside_an_error_says_nothing(self) -> None:
        assert str(refusal("x", OSError(errno.EINVAL, "refused"), "ok")) == "x: Invalid argument"

    def test_two_lines_of_the_kernel_are_one_of_ours(self) -> None:
        error = refusal("x", OSError(errno.EINVAL, "refused"), "Mask out of range\nL3: 0=fffff\n")
        assert str(error) == "x: Invalid argument (Mask out of range; L3: 0=fffff)"

    def test_a_write_that_is_refused_names_the_text_the_group_and_the_kernels_words(self, tree: Tree) -> None:
        groups = Groups(tree.root, files=Refusing("write", errno.EINVAL))
        groups.make("job7")
        (tree.root / "info" / "last_cmd_status").write_text("Mask out of range\n")
        with pytest.raises(ResctrlError, match=r"'L3:0=f0;1=f0' .*/sns_job7/schemata: Inv.* \(Mask out of range"):
            groups.write("job7", MASKS)

    def test_a_thread_that_may_not_be_moved_is_an_error(self, tree: Tree) -> None:
        groups = Groups(tree.root, files=Refusing("write", errno.EPERM))
        groups.make("job7")
        with pytest.raises(ResctrlError, match=r"thread 1 cannot be moved to .*/sns_job7"):
            groups.move("job7", [1])

    def test_no_closid_is_left(self, tree: Tree) -> None:
        groups = Groups(tree.root, files=Tree(tree.root, closids=2))
        groups.make("a")
        with pytest.raises(CannotMake, match=r"group .*/sns_b cannot be made: .*\(Out of CLOSIDs\)"):
            groups.make("b")

    def test_a_group_that_has_vanished_cannot_be_written_read_or_filled(self, groups: Groups) -> None:
        for call in (
            lambda: groups.write("job7", MASKS),
            lambda: groups.read("job7"),
            lambda: groups.tasks("job7"),
            lambda: groups.move("job7", [1]),
        ):
            with pytest.raises(GroupGone):
                call()

    def test_a_tree_that_is_gone_has_no_groups(self, tmp_path: Path) -> None:
        with pytest.raises(GroupGone, match=r"cannot be read"):
            Groups(tmp_path / "none").names()

    def test_words_that_cannot_be_read_are_left_out(self, tree: Tree) -> None:
        (tree.root / "info" / "last_cmd_status").unlink()
        with pytest.raises(ResctrlError, match=r"Device or resource busy$"):
            Groups(tree.root, files=Refusing("make", errno.EBUSY)).make("a")
