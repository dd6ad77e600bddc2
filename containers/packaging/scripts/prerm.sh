#!/bin/sh
# Before a removal (deb: remove; rpm: 0), not before an upgrade: a clean stop gives the waiting jobs to Slurm.
set -e
case "$1" in
    remove | 0) ;;
    *) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
    for unit in sns-agent sns-scheduler sns-watchdog; do
        systemctl disable --now --quiet "$unit" 2> /dev/null || true # one that the package does not have
    done
fi
if [ -e /sys/fs/resctrl/schemata ]; then sns agent --clean-up || true; fi
# What numba compiled for root beside the code.
find /usr/lib/slurm-sns -name '*.nb[ci]' -delete
