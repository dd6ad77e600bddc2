"""The emulated trees beside those that were captured on real machines."""

import os
import tarfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from resctrl_emulator import files
from resctrl_emulator.machines import HASWELL, L2_ONLY, SPARSE, XEON, CacheType
from resctrl_emulator.rules import Tree

SHARED = Path(os.environ.get("SNS_SHARED", Path(__file__).parents[2].parent / "shared"))
TREES = SHARED / "resctrl" / "captured-trees.tar.xz"

pytestmark = pytest.mark.skipif(not TREES.is_file(), reason=f"{TREES} is missing (SNS_SHARED names the folder)")

FOUR = (0, 1, 2, 3)
_XEON_OF_FOUR = replace(
    XEON,
    cpus=192,
    llc_domains=FOUR,
    caches=(replace(XEON.caches[0], domains=FOUR, is_cdp_capable=False),),
    bandwidth=replace(XEON.bandwidth, domains=FOUR, closids=8),
    monitoring=replace(XEON.monitoring, domains=FOUR),
    kernel=(4, 14),
)
#: The machines on which the trees were captured, as far as the trees show them.
CAPTURED = {
    "resctrl.full": replace(_XEON_OF_FOUR, bandwidth=replace(_XEON_OF_FOUR.bandwidth, throttle_mode=None)),
    "resctrl.nomb": replace(_XEON_OF_FOUR, bandwidth=None, caches=(replace(_XEON_OF_FOUR.caches[0], least_bits=2),)),
    "resctrl.nol3": replace(_XEON_OF_FOUR, caches=(), bandwidth=replace(_XEON_OF_FOUR.bandwidth, throttle_mode=None)),
    "resctrl.l2": L2_ONLY,
    "resctrl.l2cdp": replace(
        HASWELL,
        cpus=8,
        caches=(
            CacheType("L3", 0xFFF, 1, 4, (0,), 12582912, shareable=0x400),
            CacheType("L2", 0xFFFFF, 1, 8, FOUR, 1310720, is_cdp_capable=True),
        ),
        monitoring=None,
        options=frozenset({"cdpl2"}),
    ),
    "resctrl.l2l3mb": replace(
        SPARSE,
        caches=(
            CacheType("L3", 0xFFFFF, 1, 15, (0, 1), 20 * 2621440, shareable=0xC0001, is_cdp_capable=True),
            CacheType("L2", 0xFFFF, 1, 8, tuple(range(40)), 2097152),
        ),
    ),
}
#: What the capture has left out, what its authors have changed by hand, or what depends on the moment.
LEFT_OUT = ("tasks", "bit_usage", "mon_data", "mon_groups", "oresctrl", "Guaranteed")
BY_HAND = {"resctrl.nomb": {"size"}, "resctrl.l2cdp": {"info/L2CODE/bit_usage"}}


@cache
def captured(name):
    """The files of a captured tree, by path."""
    found = {}
    with tarfile.open(TREES) as archive:
        for member in archive:
            path = member.name.removeprefix("./")
            if member.isfile() and path.startswith(f"{name}/"):
                found[path.removeprefix(f"{name}/")] = archive.extractfile(member).read().decode()
    return found


def plain(text):
    """Without the padding, which kernels do differently, and some of the captured trees have lost."""
    lines = [line.replace(" ", "") for line in text.splitlines() if line]
    return [
        ";".join(part.partition("=")[0] + "=" + part.partition("=")[2].lstrip("0") for part in line.split(";"))
        if "=" in line
        else line
        for line in lines
    ]


@pytest.mark.parametrize("name", sorted(CAPTURED))
def test_an_emulated_tree_reads_like_the_captured_one(name):
    emulated = {
        path: node.read() for path, node in files.walk(files.root(Tree(CAPTURED[name]))) if isinstance(node, files.File)
    }
    compared = {
        path: text
        for path, text in captured(name).items()
        if not any(part in path for part in LEFT_OUT) and path not in BY_HAND.get(name, ())
    }
    assert len(compared) > 5
    assert {path: plain(emulated.get(path, "")) for path in compared} == {
        path: plain(text) for path, text in compared.items()
    }
