"""`sns key`: a key is made, added, promoted, checked, and never shown."""

import json
from pathlib import Path

import pytest

from slurm_sns.wire.keys import Keys


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return tmp_path / "sns.key"


def test_a_rotation_step_by_step(sns, config: Path, key: Path) -> None:
    def names() -> tuple[str, ...]:
        return Keys.parse(key.read_text()).names

    with_config = ("--config", config)
    assert sns("key", "new", key, *with_config)[0] == 0
    assert key.stat().st_mode & 0o777 == 0o600
    (old,) = names()
    first = key.read_text()
    status, out, _ = sns("key", "new", "--add", key, *with_config)
    assert (status, names()[0], len(names())) == (0, old, 2)
    assert out == f"{key}: {names()[1]} added; copy it to all nodes before the next step\n"
    new = names()[1]
    assert new not in ("", old)
    status, out, _ = sns("key", "new", "--promote", key, *with_config)
    assert (status, names()) == (0, (new, old))
    assert f"{new} signs" in out
    assert first in key.read_text()
    assert key.stat().st_mode & 0o777 == 0o600


def test_two_keys_are_never_alike(sns, config: Path, key: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    for path in (key, other):
        assert sns("key", "new", path, "--config", config)[0] == 0
    assert Keys.parse(key.read_text()).signing.secret != Keys.parse(other.read_text()).signing.secret
    assert len(Keys.parse(key.read_text()).signing.secret) == 32


def test_the_file_of_sns_yaml_is_the_default(sns, write_config, key: Path) -> None:
    config = write_config(agents={"key_file": str(key)})
    assert sns("key", "new", "--config", config)[0] == 0
    assert sns("key", "check", "--config", config)[1].startswith(f"{key}: ")


def test_check_names_the_keys_and_shows_no_secret(sns, config: Path, key: Path) -> None:
    sns("key", "new", key, "--config", config)
    sns("key", "new", "--add", key, "--config", config)
    keys = Keys.parse(key.read_text())
    status, out, _ = sns("key", "check", key, "--config", config)
    assert status == 0
    for each, role in zip(keys.keys, ("signs", "verifies"), strict=True):
        assert f"{each.name:16}  {each.fingerprint}  {role}\n" in out
        assert each.secret.hex() not in out
    status, out, _ = sns("key", "check", key, "--json", "--config", config)
    assert [each["id"] for each in json.loads(out)["keys"]] == list(keys.names)


def test_an_existing_file_is_not_overwritten(sns, config: Path, key: Path) -> None:
    sns("key", "new", key, "--config", config)
    before = key.read_text()
    status, _, err = sns("key", "new", key, "--config", config)
    assert (status, err) == (2, f"sns: error: the key file {key} exists; --add appends a key to it\n")
    assert key.read_text() == before


def test_a_file_that_others_may_read_is_neither_checked_nor_changed(sns, config: Path, key: Path) -> None:
    sns("key", "new", key, "--config", config)
    key.chmod(0o644)
    for words in (("check",), ("new", "--add"), ("new", "--promote")):
        status, _, err = sns("key", *words, key, "--config", config)
        assert status == 2
        assert "has mode 0644" in err


def test_add_and_promote_are_two_steps(sns, config: Path, key: Path) -> None:
    sns("key", "new", key, "--config", config)
    status, _, err = sns("key", "new", "--add", "--promote", key, "--config", config)
    assert status == 2
    assert "--add and --promote are two steps" in err


def test_a_broken_file_is_said_in_one_line_and_left_as_it_is(sns, config: Path, key: Path) -> None:
    key.write_text("old abc\n")
    key.chmod(0o600)
    for words in (("check",), ("new", "--add"), ("new", "--promote")):
        status, _, err = sns("key", *words, key, "--config", config)
        assert status == 2
        assert "line 1 is no key" in err
    assert key.read_text() == "old abc\n"


def test_on_a_node_without_sns_yaml_a_file_can_be_named(sns, key: Path, tmp_path: Path) -> None:
    nowhere = tmp_path / "none.yaml"
    assert sns("key", "new", key, "--config", nowhere)[0] == 0
    assert sns("key", "check", key, "--config", nowhere)[0] == 0
    assert sns("key", "check", "--config", nowhere)[0] == 2
