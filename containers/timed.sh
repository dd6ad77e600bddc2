#!/bin/bash
# Say what somebody waits for, and how long it took the last time:
#   timed.sh NAME WHAT COMMAND...    say WHAT, run COMMAND, and note under NAME how long it took
# The notes are in ~/.cache/slurm_sns/durations: NAME, a tab, seconds. Without them, or where they cannot be written, the
# wait is announced as a first one: $FIRST says how long that takes. Other scripts source this file and use `announce` and `took`.
set -euo pipefail

DURATIONS=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
DURATIONS=${DURATIONS:+$DURATIONS/slurm_sns/durations} # empty: nowhere

say() { echo "== $*" >&2; }

# announce NAME WHAT [FIRST]: FIRST says how long it takes where nothing is noted.
announce() {
    local last
    last=$(awk -F '\t' -v name="$1" '$1 == name && $2 ~ /^[0-9.]+$/ { last = $2 } END { print last }' \
        "$DURATIONS" 2> /dev/null < /dev/null) || last=
    if [[ -n $last ]]; then say "$2 (the last time: $last s)"; else say "$2 (${3:-the first time: some minutes})"; fi
}

# took NAME BEGAN: note the seconds since $EPOCHREALTIME was BEGAN. Never fails: a note is worth no run.
took() {
    local seconds=$((${EPOCHREALTIME%[.,]*} - ${2%[.,]*})) kept
    [[ -n $DURATIONS ]] || return 0
    {
        mkdir -p "${DURATIONS%/*}"
        kept=$(awk -F '\t' -v name="$1" '$1 != name' "$DURATIONS" || true)
        printf '%s\n' ${kept:+"$kept"} "$1"$'\t'"$seconds" > "$DURATIONS.$$"
        mv "$DURATIONS.$$" "$DURATIONS"
    } 2> /dev/null || true
}

timed() {
    local name=$1 began=$EPOCHREALTIME
    announce "$name" "$2" "${FIRST:-}"
    "${@:3}"
    took "$name" "$began"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    (($# >= 3)) || { sed -n '3s/^# *//p' "$0" >&2; exit 2; }
    timed "$@"
fi
