#!/bin/bash
# Build pyslurm against the installed Slurm and install it:  build.sh PIP
# For Slurm 24.11 and 25.05, which PyPI has no pyslurm for, this builds slurm_sns' own library instead (plugins/libslurm).
# or only make its wheel, for hosts with the same release:   build.sh PIP wheel --no-deps -w DIR
# Needed: gcc, Python's headers, Slurm's headers and library (libslurm-dev).
#   SLURM_INCLUDE=/opt/slurm/include SLURM_LIB=/opt/slurm/lib if Slurm is not in /usr
set -euo pipefail
pip=$1
shift
include=${SLURM_INCLUDE:-/usr/include}
library=${SLURM_LIB:-/usr/lib/$(gcc -print-multiarch)}
version=$(sed -nE 's/^#define[[:space:]]+SLURM_VERSION_NUMBER[[:space:]]+//p' "$include/slurm/slurm_version.h")

export PYSLURM_BUILD_JOBS=${PYSLURM_BUILD_JOBS:-$(nproc)} SLURM_LIB_DIR=$library SLURM_INCLUDE_DIR=$include
case $version in
    0x180b* | 0x1905*)
        if (($#)); then
            echo "build.sh: there is no pyslurm for Slurm 24.11 and 25.05, so no wheel; build.sh PIP installs what replaces it" >&2
            exit 1
        fi
        exec make -C "$(dirname "$0")/../libslurm" install "PYTHON=$(dirname "$pip")/python" "SLURM_INCLUDE=$include" \
            ${SLURM_LIB:+"SLURM_LIB=$SLURM_LIB"}
        ;;
    0x190b*) ;; # 25.11, the release that pyslurm 25.11.2 is for
    0x1a05*)
        # 26.05: pyslurm accepts only headers whose version is 25.11, so a copy of slurm_version.h says that. All other
        # headers, with the layouts of the structures, are the real ones, and Slurm's own macro for callers of the
        # older API does the rest.
        headers=$(mktemp -d)
        trap 'rm -rf "$headers"' EXIT
        mkdir "$headers/slurm"
        ln -s "$include"/slurm/*.h "$headers/slurm/"
        rm "$headers/slurm/slurm_version.h"
        sed 's/0x1a05../0x190b00/' "$include/slurm/slurm_version.h" > "$headers/slurm/slurm_version.h"
        SLURM_INCLUDE_DIR=$headers
        # The names that 26.05 changed and that the macro does not cover; 2084 is the error's number in 25.11.
        export CFLAGS="-DSLURM_BACKWARD_COMPAT -Dslurm_free_ctl_conf=slurm_free_conf -DESLURM_ERROR_ON_DESC_TO_RECORD_COPY=2084 -O1"
        ;;
    *)
        echo "build.sh: $include/slurm/slurm_version.h says ${version:-nothing}: slurm_sns works with Slurm 24.11 to" \
            "26.05 (0x180b.. to 0x1a05..)" >&2
        exit 1
        ;;
esac
if (($#)); then
    "$pip" "$@" --no-cache-dir pyslurm==25.11.2
else
    # Reinstall even if this version is installed already: it may be built for another release of Slurm.
    "$pip" install --no-cache-dir --force-reinstall pyslurm==25.11.2
    # `sns check` compares this with the release of the running slurmctld.
    installed=$("$(dirname "$pip")/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
    echo "$version" > "$installed/pyslurm/built_for_slurm"
fi
