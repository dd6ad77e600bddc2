"""The man pages and completions say what the command line has, and the shells can use them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from slurm_sns.cli.app import app
from slurm_sns.cli.manual import COMPLETIONS, files
from slurm_sns.package_files import shared_path

FILES = files(shared_path("conf/sns.yaml").read_text(encoding="utf-8"))
PAGES = {Path(name).name.removesuffix(".1"): text for name, text in FILES.items() if name.endswith(".1")}


def commands(words=("sns",), command=None):
    """Every command by the name of its page."""
    command = command or typer.main.get_command(app())
    yield "-".join(words), command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands((*words, name), each)


COMMANDS = dict(commands())


def test_each_command_has_a_page() -> None:
    assert PAGES.keys() == COMMANDS.keys()
    assert {"sns", "sns-status", "sns-profile-list"} <= PAGES.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_names_every_option_and_is_sound_roff(name: str) -> None:
    page = PAGES[name]
    for parameter in COMMANDS[name].params:
        for option in parameter.opts if parameter.opts[0].startswith("-") else ():
            assert option.replace("-", "\\-") in page
    assert page.startswith(".TH ")
    requests = {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".PP", ".TP", ".B", ".BR", ".I"}, "a line of text begins no request"
    assert not re.search(r"\\(?![-e&])", page), "and holds no escape but ours"


def test_the_page_of_the_configuration_is_the_shipped_one() -> None:
    page = FILES["share/man/man5/sns.yaml.5"].replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
    shipped = shared_path("conf/sns.yaml").read_text(encoding="utf-8")
    assert shipped.rstrip("\n") in page


def completed(words: str, environment: dict[str, str]) -> list[str]:
    """What bash offers for the last of these words, with the installed file loaded."""
    script = (
        f"source {environment['SCRIPT']}; COMP_WORDS=({words}); COMP_CWORD=$(({len(words.split())} - 1)); "
        "$(complete -p sns | sed 's/.*-F \\([^ ]*\\) .*/\\1/') sns; printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.split()


@pytest.mark.long
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    (tmp_path / "sns").write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from slurm_sns.cli import main; main()' \"$@\"\n"
    )
    (tmp_path / "sns").chmod(0o755)
    (tmp_path / "completion").write_text(FILES[COMPLETIONS["bash"]])
    path = f"{tmp_path}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "SCRIPT": str(tmp_path / "completion")}
    assert completed("sns sta", environment) == ["status"]
    assert {"--watch", "--json", "--config"} <= set(completed("sns status --", environment))
    assert completed("sns profile ex", environment) == ["export"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_ask_sns_too(shell: str) -> None:
    text = FILES[COMPLETIONS[shell]]
    assert f"_SNS_COMPLETE=complete_{shell}" in text
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True, timeout=60)
