#!/bin/bash
# Install Debian packages that the Makefile and the cluster need, if their command is missing:
#   packages.sh COMMAND[:PACKAGE] ...
# Take one file out of a package, which is not installed:
#   packages.sh --take FILE TARGET PACKAGE...    out of the first of these packages that this release has
# Asks no questions; uses sudo if the caller is not root. Other scripts source this file.
set -euo pipefail

# shellcheck source=containers/timed.sh
source "$(dirname "${BASH_SOURCE[0]}")/timed.sh"

as_root() {
    if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

# Debian's package would make a database and start a server for it. Whoever has chosen that himself keeps it.
without_postgresql_server() {
    local chosen=/etc/postgresql-common/createcluster.conf
    [[ -e $chosen ]] || as_root sh -c "mkdir -p ${chosen%/*} && echo 'create_main_cluster = off' > $chosen"
}

apt_install() {
    local began=$EPOCHREALTIME
    announce "apt $*" "installing with apt: $*" "a minute or two"
    as_root apt-get update -qq > /dev/null
    [[ " $* " != *" postgresql "* ]] || without_postgresql_server
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" > /dev/null
    took "apt $*" "$began"
}

# Install the first of these packages that this release has: names differ between releases.
apt_install_first() {
    local package
    as_root apt-get update -qq > /dev/null
    for package in "$@"; do
        if [[ -n $(apt-cache madison "$package") ]]; then
            apt_install "$package"
            return
        fi
    done
    say "no package of this name: $*"
    return 1
}

# Daemons are in directories that are not on every user's PATH.
has_command() {
    local postgresql=(/usr/lib/postgresql/*/bin)
    PATH=$PATH:/usr/sbin:/sbin:$(IFS=:; echo "${postgresql[*]}") command -v "$1" > /dev/null
}

ensure_commands() {
    local wanted missing=()
    for wanted in "$@"; do
        has_command "${wanted%%:*}" || missing+=("${wanted##*:}")
    done
    ((${#missing[@]} == 0)) || apt_install "${missing[@]}"
}

# take_file FILE TARGET PACKAGE...: for a program of a package that would start a service, or brings much else.
take_file() {
    local began=$EPOCHREALTIME name=${1##*/} scratch package
    announce "take $name" "fetching $name out of Debian's packages" "half a minute"
    scratch=$(mktemp -d)
    as_root apt-get update -qq > /dev/null
    for package in "${@:3}"; do
        [[ -n $(apt-cache madison "$package") ]] || continue
        (cd "$scratch" && apt-get download -qq "$package" > log 2>&1) || { cat "$scratch/log" >&2; return 1; }
        dpkg-deb --fsys-tarfile "$scratch"/*.deb | tar -x -C "$scratch" ".$1"
        install -D -m 755 "$scratch$1" "$2"
        rm -rf "$scratch"
        took "take $name" "$began"
        return
    done
    say "no package of this name: ${*:3}"
    return 1
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    if [[ ${1:-} == --take ]]; then
        take_file "${@:2}"
    else
        ensure_commands "$@"
    fi
fi
