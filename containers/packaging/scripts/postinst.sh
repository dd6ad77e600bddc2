#!/bin/sh
# After an installation (deb: configure; rpm: 1) nothing runs yet. After an upgrade (deb: configure OLD; rpm: 2) what ran
# is started again; waiting jobs stay gated, because a restart hands over.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
case "$1 $2" in
    "configure "?* | "2 "*) ;;
    *) exit 0 ;;
esac
# Not on a node, which may share /etc/slurm with a controller of another version.
if [ @CONTROLLER@ = yes ]; then
    # The old version runs on where the new one refuses the configuration.
    if [ -d /etc/slurm/sns ] && ! sns render /etc/slurm/sns; then
        echo "slurm-sns: change /etc/slurm/sns.yaml, then: sns render /etc/slurm/sns; systemctl restart sns-scheduler sns-watchdog" >&2
        exit 0
    fi
    systemctl daemon-reload
    # slurmctld reads the filter's modules again when its script changes.
    if grep -qs sns_filter /etc/slurm/job_submit.lua; then touch /etc/slurm/job_submit.lua; fi
    if systemctl is-active --quiet sns-scheduler; then
        # Compiled while the old scheduler still runs, so that the pause is short.
        user=$(systemctl show -P User sns-scheduler)
        # shellcheck disable=SC2046 # the words NAME=VALUE of the unit
        runuser -u "$user" -- env $(systemctl show -P Environment sns-scheduler) sns scheduler --compile || true
    fi
fi
for unit in sns-watchdog sns-scheduler sns-agent; do
    systemctl try-restart "$unit" 2> /dev/null || true # a node has no other than the agent; a log says why one failed
done
