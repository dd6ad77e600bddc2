"""An emulator of the kernel's resctrl file system: it controls no hardware, and nothing outside the tests uses it.

| module | content |
|---|---|
| `rules` | the kernel's rules as a model in memory: groups, CLOSIDs, RMIDs, modes, CPUs, tasks, the last status |
| `schemata` | the lines of the file schemata: what the kernel accepts, and how it writes them |
| `cpu_lists` | CPU masks and CPU lists as text |
| `machines` | machine types: what a processor offers, the mount options, the kernel's version |
| `worlds` | which tasks exist: the machine's own (/proc), or emulated ones |
| `programs` | emulated programs, whose speed and counters follow their profile's curves |
| `emulator` | a tree, its programs and a clock together |
| `files` | the tree as directories and files; `write_copy` makes plain files of it |
| `mount` | the FUSE file system; `mounted` is the fixture's context manager, `why_not` the reason for a skip |

By hand, or in a container, with tests/ on PYTHONPATH:

    python -m resctrl_emulator MOUNTPOINT --machine xeon

It needs mfusepy (PyPI, ISC licence, ctypes only: no compiler) and libfuse 3. Debian's package fuse3 brings libfuse 3
(libfuse3-3 on bookworm, libfuse3-4 later) and fusermount3; root needs the library alone. In a container: SYS_ADMIN,
/dev/fuse and no AppArmor profile. Source of the rules: the kernel's fs/resctrl (rdtgroup.c, ctrlmondata.c,
monitor.c), fs/kernfs/file.c and Documentation/filesystems/resctrl.rst.

In the mounted tree the directory .emulator, which no listing shows, holds what a real machine has elsewhere or not at
all: `clock`, `programs`, `counters` and `faults`, explained in `control`.
"""
