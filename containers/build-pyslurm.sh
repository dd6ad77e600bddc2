#!/bin/bash
# Build pyslurm 25.11 against Debian's Slurm: build-pyslurm.sh PIP
set -euo pipefail
pip=$1

headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
mkdir "$headers/slurm"
ln -s /usr/include/slurm/*.h "$headers/slurm/"
rm "$headers/slurm/slurm_version.h"
# 0x1a05.. is 26.05, 0x190b00 is 25.11.0.
sed 's/0x1a05../0x190b00/' /usr/include/slurm/slurm_version.h > "$headers/slurm/slurm_version.h"

# The names that 26.05 changed and its compatibility macro leaves out; 2084 is the error's number in 25.11.
export CFLAGS="-DSLURM_BACKWARD_COMPAT -Dslurm_free_ctl_conf=slurm_free_conf -DESLURM_ERROR_ON_DESC_TO_RECORD_COPY=2084 -O1"
SLURM_INCLUDE_DIR=$headers SLURM_LIB_DIR=/usr/lib/$(gcc -print-multiarch) PYSLURM_BUILD_JOBS=$(nproc) \
    "$pip" install pyslurm==25.11.2
