"""Makes the packages: one run for .deb and .rpm, in the image of the Dockerfile beside it.

    build_packages.py SOURCES STAGE PACKAGES

STAGE/controller and STAGE/node have an environment each, with what the lock files name. Each gets the wheel of SOURCES
and is compiled, and its licences are judged. nfpm packs it with the units, which are those that `sns render` writes for
the default paths. The binding is the pyslurm of the cluster's image, or what takes its place there, and the SPANK
plugin, compiled for its Slurm.
"""

import gzip
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distributions
from pathlib import Path

import licences

HERE, TOOLS = Path(__file__).parent, Path(sys.executable).parent
#: Where an environment is on a host, and where it appears to be while it is packed: scripts and bytecode have its path.
HOME = Path("/usr/lib/slurm-sns")
PYTHON = f"python3.{sys.version_info.minor}"
PACKAGES_OF_HOME = HOME / "lib" / PYTHON / "site-packages"
#: What no daemon needs: other packages' commands and tests, a shell's scripts, pages that go elsewhere.
LEFT_OUT = (
    *("bin/[!ps]*", "bin/py[!t]*", "bin/p[!y]*", "share", ".gitignore"),
    *(f"lib/{PYTHON}/site-packages/{each}" for each in ("num*/**/tests", "slurm_sns/share/**/.gitignore")),
)
#: Where the cluster's image has its Python packages: pyslurm, if there is one for its Slurm.
OF_THE_CLUSTER = Path("/opt/sns/lib", PYTHON, "site-packages")
#: Any configuration with the default paths: no other value of it is in a unit.
SAMPLE = "partitions: [m]\nnodes: [{names: c, partitions: [m], cores: 1, memory_mb: 1000}]\nagents: {controller: c}\n"
ABOUT = """slurm_sns lets batch jobs of a Slurm cluster wait, plans them together by cores
and memory, and tells Slurm where each one starts. Slurm still starts, accounts
for and ends every job."""
RELEASE = "1"
#: What each binding provides, so that there is one at a time.
BINDING = ["slurm-sns-binding"]
#: A Slurm of Debian's packages has its plugins here, one of other distributions there.
LIBRARIES = {"deb": f"/usr/lib/{os.uname().machine}-linux-gnu", "rpm": "/usr/lib64"}
PLUGIN_DIRECTORIES = {"deb": f"{LIBRARIES['deb']}/slurm-wlm", "rpm": f"{LIBRARIES['rpm']}/slurm"}


def run(*words: object) -> str:
    """What the command prints on standard output."""
    return subprocess.run([str(word) for word in words], check=True, stdout=subprocess.PIPE, text=True).stdout


def tree(source: Path, at: Path) -> dict:
    return {"src": str(source), "dst": str(at), "type": "tree"}


def directory(at: Path) -> dict:
    """One that goes with the last package that has it: rpm leaves those that no package has."""
    return {"dst": str(at), "type": "dir", "file_info": {"mode": 0o755}}


def file(source: Path, at: object, **more: object) -> dict:
    return {"src": str(source), "dst": str(at), "file_info": {"mode": source.stat().st_mode & 0o777 | 0o644}, **more}


def set_version(sources: Path, version: str) -> None:
    """Give the sources this version, for a test of an upgrade."""
    for path, name in ((sources / "pyproject.toml", "version"), (sources / "slurm_sns/__init__.py", "__version__")):
        path.write_text(re.sub(rf"(?m)^{name} = .*$", f'{name} = "{version}"', path.read_text()))


def finish(environment: Path, wheel: Path) -> Path:
    """Install the wheel into the environment, compile it, take out what no daemon needs; return its pages' folder."""
    HOME.unlink(missing_ok=True)
    HOME.symlink_to(environment)
    run(TOOLS / "pip", "--python", HOME / "bin/python", "install", "-q", "--no-deps", "--no-compile", wheel)
    pages = environment.with_name("share")
    shutil.rmtree(pages, ignore_errors=True)
    shutil.copytree(environment / "share", pages)
    for path in [path for pattern in LEFT_OUT for path in environment.glob(pattern)]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    # Users cannot write it where it is, and times of files may change on the way there.
    run(HOME / "bin/python", "-m", "compileall", "-q", "-j0", "--invalidation-mode", "unchecked-hash", HOME / "lib")
    for path in environment.rglob("*.so*"):
        path.chmod(0o644)
    if licences.main(str(PACKAGES_OF_HOME)):
        sys.exit(f"{environment}: not every licence goes into a daemon's process")
    return pages


def compressed(source: bytes, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(source, mtime=0))
    return path


def papers(name: str, version: str, folder: Path, found: Path | None, more: str = "") -> list[dict]:
    """What /usr/share/doc has: licences, changelog, and the bill of materials of the environment, if there is one."""
    at = Path("/usr/share/doc") / name
    folder.mkdir()
    lines = [
        "Copyright (C) 2026 the slurm_sns authors",
        "License: GPL-2.0-or-later, see /usr/share/common-licenses/GPL-2",
        more,
    ]
    entries = [directory(at)]
    if found is not None:
        each = sorted(distributions(path=[str(found)]), key=lambda each: each.metadata["Name"].lower())
        lines += ["", f"Python packages below {PACKAGES_OF_HOME}; the licences' texts are in *.dist-info there:", ""]
        lines += [f"{one.metadata['Name']} {one.version}: {licences.licence(one)}" for one in each]
        bill = folder / "sbom.cdx.json"
        words = ["environment", "--output-reproducible", "--of", "JSON", "-o", bill, HOME / "bin/python"]
        run(TOOLS / "cyclonedx-py", *words)
        entries.append(file(bill, at / bill.name))
    (folder / "copyright").write_text("\n".join(lines) + "\n")
    maintainer = os.environ["SNS_MAINTAINER"]
    news = f"{name} ({version}-{RELEASE}) unstable; urgency=medium\n\n  * See the CHANGELOG of slurm_sns.\n\n"
    news += f" -- {maintainer}  Thu, 01 Jan 2026 00:00:00 +0000\n"
    entries.append(file(folder / "copyright", at / "copyright"))
    entries.append(
        file(compressed(news.encode(), folder / "changelog.Debian.gz"), at / "changelog.Debian.gz", packager="deb")
    )
    overridden = folder / "lintian"
    overridden.write_text(lintian_overrides((HERE / "lintian" / name.rstrip("0123456789.")).read_text()))
    return [*entries, file(overridden, f"/usr/share/lintian/overrides/{name}", packager="deb")]


def lintian_overrides(text: str) -> str:
    """Without the tags of other releases of lintian: it takes a tag that it does not know for an error."""
    known = {path.stem for path in Path("/usr/share/lintian/tags").rglob("*.tag")}
    return "".join(line for line in text.splitlines(keepends=True) if line.startswith("#") or line.strip() in known)


def pages_and_completions(pages: Path, scratch: Path) -> list[dict]:
    """Where man and the shells look for them."""
    entries = []
    for page in sorted(pages.glob("man/man*/*")):
        packed = compressed(page.read_bytes(), scratch / "man" / f"{page.name}.gz")
        entries.append(file(packed, f"/usr/share/man/{page.parent.name}/{packed.name}"))
    places = {
        "bash-completion/completions": "",
        "zsh/site-functions": "zsh/vendor-completions",
        "fish/vendor_completions.d": "",
    }
    for source, other in places.items():
        entries += [
            file(each, f"/usr/share/{other or source}/{each.name}") for each in sorted(pages.glob(f"{source}/*"))
        ]
    return entries


class Packer:
    """Writes packages into a folder, with what all of them have in common."""

    def __init__(self, version: str, folder: Path, scratch: Path) -> None:
        self.version, self.folder, self.scratch = version, folder, scratch
        low, high = f"3.{sys.version_info.minor}", f"3.{sys.version_info.minor + 1}"
        self.needs_python = {"deb": [f"python3 (>= {low})", f"python3 (<< {high}~)"], "rpm": [PYTHON]}

    def pack(self, name: str, summary: str, entries: list[dict], differing: dict[str, dict], **more: object) -> None:
        """Make both packages; `differing` has what only the .deb or only the .rpm says."""
        machine = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
        common = {
            "name": name,
            "arch": machine,
            "version": self.version,
            "release": RELEASE,
            "section": "admin",
            "maintainer": os.environ["SNS_MAINTAINER"],
            "description": f"{summary}\n{ABOUT}",
            "homepage": "https://pypi.org/project/slurm-sns/",
            "license": "GPL-2.0-or-later",
            "contents": entries,
            "deb": {"compression": "gzip"},
            "rpm": {
                "compression": "zstd",
                "summary": summary[0].upper() + summary[1:],
                "group": "System Environment/Daemons",
            },
            **more,
        }
        for kind, only in differing.items():
            settings = self.scratch / f"{name}.{kind}.json"
            settings.write_text(json.dumps(common | only))
            run(TOOLS / "nfpm", "package", "--config", settings, "--packager", kind, "--target", self.folder)

    def scripts(self, controls: bool) -> dict:
        """The maintainer's scripts of the controller's package, or of a node's."""
        made = {}
        for name, key in (("postinst", "postinstall"), ("prerm", "preremove"), ("postrm", "postremove")):
            path = self.scratch / f"{name}.{controls}"
            text = (HERE / "scripts" / f"{name}.sh").read_text()
            path.write_text(text.replace("@CONTROLLER@", "yes" if controls else "no"))
            made[key] = str(path)
        return made


def pack_environment(packer: Packer, environment: Path, wheel: Path, name: str) -> None:
    """The package of the controller, which has all that a node's has, or that of a node."""
    controls = name == "slurm-sns"
    scratch = packer.scratch / name
    pages = finish(environment, wheel)
    config = Path("/etc/slurm/sns.yaml")  # its path is in the units
    config.write_text(SAMPLE)
    run(HOME / "bin/sns", "render", scratch, "--config", config)
    units = ["sns-agent", "sns-scheduler", "sns-watchdog"] if controls else ["sns-agent"]
    entries = [
        tree(environment, HOME),
        {"src": f"../lib/{HOME.name}/bin/sns", "dst": "/usr/bin/sns", "type": "symlink"},
        *(file(scratch / f"{unit}.service", f"/usr/lib/systemd/system/{unit}.service") for unit in units),
        *pages_and_completions(pages, scratch),
        *papers(name, packer.version, scratch / "doc", PACKAGES_OF_HOME),
    ]
    if controls:
        lua = shutil.copytree(PACKAGES_OF_HOME / "slurm_sns/share/plugins/job_submit", scratch / "lua")
        entries += [file(each, f"/usr/share/lua/5.1/{each.name}") for each in sorted(lua.glob("sns_*.lua"))]
        module = compiled(lua, "sns_jobs_table.so")
        module.chmod(0o644)
        entries += [file(module, f"{at}/lua/5.1/{module.name}", packager=kind) for kind, at in LIBRARIES.items()]
    other = ["slurm-sns-node" if controls else "slurm-sns"]
    packer.pack(
        name,
        "scheduler and watchdog for a Slurm controller"
        if controls
        else "agent for a Slurm node, and commands for users",
        entries,
        {
            "deb": {"depends": [*packer.needs_python["deb"], "libc6"], "replaces": other},
            "rpm": {"depends": packer.needs_python["rpm"]},
        },
        scripts=packer.scripts(controls),
        recommends=BINDING if controls else [],
        provides=other if controls else [],
        conflicts=other,
    )


def compiled(folder: Path, name: str) -> Path:
    """What this folder's Makefile makes, without what is for debuggers."""
    run("make", "-C", folder, "clean", name, "CFLAGS=-O2 -g0 -D_FORTIFY_SOURCE=2", "LDFLAGS=-Wl,-z,relro,-z,now")
    run("strip", "--strip-unneeded", folder / name)
    return folder / name


def pyslurm(modules: Path) -> str:
    """Put the cluster's pyslurm there, and return where it is from."""
    for source in OF_THE_CLUSTER.glob("pyslurm*"):
        what_is_compiled = shutil.ignore_patterns("__pycache__", "*.c", "*.h", "*.pxd", "*.pxi", "*.pyx")
        shutil.copytree(source, modules / source.name, ignore=what_is_compiled)
    for each in modules.rglob("*.so"):
        run("strip", "--strip-unneeded", each)
    words = ("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", modules, "-p", PACKAGES_OF_HOME)
    run(PYTHON, *words, modules)
    if licences.main(str(modules)):
        sys.exit("pyslurm: its licence does not go into a daemon's process")
    [found] = distributions(path=[str(modules)])
    return f"pyslurm: {licences.licence(found)}; its source is https://pypi.org/project/pyslurm/{found.version}/"


def own_library(modules: Path, sources: Path) -> str:
    """Compile there what takes pyslurm's place, and return where it is from."""
    modules.mkdir(parents=True)
    library = compiled(sources / "plugins/libslurm", "sns_slurm.so")
    library.chmod(0o644)
    shutil.copy(library, modules)
    return "sns_slurm.so: of slurm_sns itself"


def pack_binding(packer: Packer, sources: Path) -> None:
    """How slurm_sns calls the installed release of Slurm, and the SPANK plugin for it."""
    header = Path("/usr/include/slurm/slurm_version.h").read_text()
    number = int(re.search(r"#define\s+SLURM_VERSION_NUMBER\s+(0x\w+)", header)[1], 16)
    release, later = (f"{each >> 8}.{each & 255:02}" for each in (number >> 8, (number >> 8) + 1))
    [library] = Path(f"/usr/lib/{os.uname().machine}-linux-gnu").glob("libslurm.so.[0-9][0-9]")
    owner = run("dpkg", "-S", library).partition(":")[0]
    name = f"slurm-sns-slurm{release}"
    modules = packer.scratch / name / "modules"
    origin = pyslurm(modules) if list(OF_THE_CLUSTER.glob("pyslurm*")) else own_library(modules, sources)
    plugin = compiled(sources / "plugins/spank", "sns.so")
    plugin.chmod(0o644)
    entries = [
        *(directory(each) for each in (HOME, HOME / "lib", HOME / "lib" / PYTHON)),
        tree(modules, PACKAGES_OF_HOME),
        *(file(plugin, f"{at}/sns.so", packager=kind) for kind, at in PLUGIN_DIRECTORIES.items()),
        *papers(name, packer.version, packer.scratch / name / "doc", None, origin),
    ]
    needs = [*packer.needs_python["deb"], f"{owner} (>= {release})", f"{owner} (<< {later}~)", "libc6"]
    packer.pack(
        name,
        f"binding of slurm_sns for Slurm {release}, with the SPANK plugin",
        entries,
        {
            "deb": {"depends": needs, "replaces": BINDING},
            "rpm": {"depends": [*packer.needs_python["rpm"], f"{library.name}()(64bit)"]},
        },
        # One release at a time.
        conflicts=BINDING,
        provides=BINDING,
    )


def main(sources: Path, stage: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    os.environ["SNS_MAINTAINER"] = os.environ.get("SNS_MAINTAINER") or "slurm_sns <slurm-sns@example.invalid>"
    if os.environ.get("SNS_VERSION"):
        set_version(sources, os.environ["SNS_VERSION"])
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        run(TOOLS / "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", scratch, sources)
        [wheel] = scratch.glob("*.whl")
        packer = Packer(wheel.name.split("-")[1], folder, scratch)
        for part, package in (("controller", "slurm-sns"), ("node", "slurm-sns-node")):
            pack_environment(packer, stage / part / HOME.name, wheel, package)
        pack_binding(packer, sources)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
