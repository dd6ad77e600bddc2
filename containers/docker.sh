#!/bin/bash
# Docker for the mini cluster: installed if missing, started if no engine answers, and stopped only if started by this.
#   docker.sh ensure|release
# Other scripts source this file and use docker_ensure, docker_release, and the commands "${DOCKER[@]}" and "${COMPOSE[@]}".
set -euo pipefail

# shellcheck source=containers/packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

DOCKER=(docker)
COMPOSE=()
# This file exists while an engine runs that this script started. It contains the process id, or "systemd".
ENGINE_MARK=/run/slurm-sns-engine
ENGINE_LOG=/var/log/slurm-sns-dockerd.log

# A `docker` command may be only a client: what counts is an engine that answers, or else dockerd.
docker_install() {
    engine_answers || ensure_commands dockerd:docker.io iptables
    has_command docker || apt_install_first docker-cli docker.io
    docker compose version > /dev/null 2>&1 || has_command docker-compose \
        || apt_install_first docker-compose-v2 docker-compose
}

# Whether an engine answers. Sets DOCKER, with sudo if this user may not talk to the engine.
engine_answers() {
    DOCKER=(docker)
    # The 0 matters: in a trap, a bare `return` gives the status from before the trap.
    "${DOCKER[@]}" info > /dev/null 2>&1 && return 0
    ((EUID != 0)) || return 1
    DOCKER=(sudo -n docker)
    "${DOCKER[@]}" info > /dev/null 2>&1
}

engine_start() {
    if [[ -d /run/systemd/system ]]; then
        say "starting Docker's service"
        as_root systemctl start docker
        echo systemd | as_root tee "$ENGINE_MARK" > /dev/null
    else
        say "starting dockerd, log in $ENGINE_LOG"
        # In a session of its own: Ctrl-C must not reach the engine.
        # shellcheck disable=SC2016 # expanded by the inner shell, as root
        as_root bash -c 'setsid dockerd < /dev/null > "$1" 2>&1 & echo $! > "$2"' - "$ENGINE_LOG" "$ENGINE_MARK"
    fi
    local tries=120
    until engine_answers; do
        ((--tries)) || { say "no Docker engine after 60 s, see $ENGINE_LOG"; return 1; }
        sleep 0.5
    done
}

# shellcheck disable=SC2034 # for the scripts that source this one
find_compose() {
    if docker compose version > /dev/null 2>&1; then
        COMPOSE=("${DOCKER[@]}" compose)
    else
        COMPOSE=("${DOCKER[@]:0:${#DOCKER[@]}-1}" docker-compose)
    fi
}

docker_ensure() {
    docker_install
    engine_answers || engine_start
    find_compose
}

# Stop the engine if this script started it and no other containers use it by now.
docker_release() {
    [[ -e $ENGINE_MARK ]] || return 0
    local mark tries=60
    mark=$(< "$ENGINE_MARK")
    if engine_answers && [[ -n $("${DOCKER[@]}" ps -q) ]]; then
        say "leaving Docker running: other containers use it"
        return 0
    fi
    if [[ $mark == systemd ]]; then
        say "stopping Docker's service"
        as_root systemctl stop docker.socket docker
    elif [[ $(cat "/proc/$mark/comm" 2> /dev/null) == dockerd ]]; then
        say "stopping dockerd"
        as_root kill "$mark"
        while [[ -d /proc/$mark ]]; do
            ((--tries)) || { say "dockerd (process $mark) still runs after 30 s"; return 1; }
            sleep 0.5
        done
    fi
    as_root rm -f "$ENGINE_MARK"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    case ${1:-} in
        ensure | release) "docker_$1" ;;
        *)
            echo "usage: docker.sh ensure|release" >&2
            exit 2
            ;;
    esac
fi
