#!/bin/sh
# After a removal. deb: `purge` removes the state, and on the controller the configuration as well, once Slurm's files
# include nothing of it.
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
[ "$1" = purge ] || exit 0
rm -rf /var/lib/sns-agent /run/sns-agent /etc/systemd/system/sns-agent.service.d
# Only in the package of the controller:
if [ @CONTROLLER@ = no ]; then exit 0; fi
rm -rf /var/lib/sns /run/sns /etc/systemd/system/sns-scheduler.service.d /etc/systemd/system/sns-watchdog.service.d
if grep -qs /etc/slurm/sns/ /etc/slurm/*.conf; then
    echo "slurm-sns: /etc/slurm/sns and sns.yaml are kept: Slurm's configuration includes files of it" >&2
else
    rm -rf /etc/slurm/sns /etc/slurm/sns.yaml /etc/slurm/sns.key
fi
