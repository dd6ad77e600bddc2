#!/bin/bash
# The mini cluster:
#   cluster.sh build            make the image (Docker is installed and started if necessary)
#   cluster.sh up               build, start, wait until every node is idle
#   cluster.sh down             remove containers, networks and volumes; stop Docker if this script started it
#   cluster.sh run COMMAND...   start a new cluster, run COMMAND, remove the cluster, also after Ctrl-C; the exit code is
#                               the command's
#   cluster.sh run OTHER... --beside COMMAND...
#                               the same, and at the same time OTHER, which needs no cluster; its output is shown first.
#                               OTHER has the lowest priority: daemons and jobs do not wait for it.
#                               Exit codes are pytest's: 0 if both succeed; if OTHER is stopped (2), COMMAND is ended
#   cluster.sh shell [USER]     a shell on the controller (alice, bob, slurm or root)
#   cluster.sh site             start another container: a plain Slurm site on which to install slurm_sns
#   cluster.sh site-down        remove it
#   cluster.sh thousand         start another container: a controller of a thousand nodes, for benchmarks and load test
#   cluster.sh thousand-down    remove it
#   cluster.sh second           start a second mini cluster, $SNS_PROJECT-second, from the first one's image
#   cluster.sh second-down      remove it
#   cluster.sh two              start a mini cluster with two controllers, $SNS_PROJECT-two, from the first one's image
#   cluster.sh two-down         remove it
#   cluster.sh prometheus       start a Prometheus beside the mini cluster, with the alert rules of conf/
#   cluster.sh packages [DIR]   make the packages, .deb and .rpm, in DIR (dist/packages/SUITE)
#   cluster.sh packaged         start another container: the plain site, under systemd, to install packages there
#   cluster.sh packaged-down    remove it
#   cluster.sh compose ARGS...  run compose with the cluster's files and names
# Environment: SNS_PROJECT (slurm-sns) names image and containers; SNS_AUTOSTART=0 leaves scheduler and watchdog alone;
# SNS_ACCOUNTING=1 gives the controller of a thousand nodes the slurmdbd of the mini cluster, which must be up;
# SNS_NODES=10000 gives that controller so many nodes, and room for forty jobs for each;
# SNS_SLURMDS=40 gives that many of its nodes a slurmd: jobs really run in their partition, `real`;
# SNS_SUITE=trixie takes Slurm from that release of Debian (forky: Slurm 26.05; trixie: 24.11); give it its own SNS_PROJECT;
# SNS_PYSLURM=no leaves pyslurm out of the image: slurm_sns calls Slurm by its own library, as it does on trixie;
# SNS_CONTROLLERS=2 gives the cluster a second controller, $SNS_PROJECT-ctl2;
# SNS_RESCTRL=0 starts the nodes without the rights that they need for an emulated resctrl;
# SNS_VERSION and SNS_MAINTAINER: what packages say, instead of the version of the sources and of nobody.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
# shellcheck source=containers/docker.sh
source "$here/docker.sh"

export SNS_PROJECT=${SNS_PROJECT:-slurm-sns}
export SNS_IMAGE=$SNS_PROJECT
suite=${SNS_SUITE:-forky}
base_image=slurm-sns-base:$suite
ready_timeout_s=120

seconds_since() { awk -v then="$1" -v now="$EPOCHREALTIME" 'BEGIN { printf "%.0f s", now - then }'; }

# The nodes have an emulated resctrl where it can be mounted.
compose_files=(-f "$here/compose.yaml")
if [[ ${SNS_RESCTRL:-1} != 0 && -c /dev/fuse ]]; then compose_files+=(-f "$here/compose.resctrl.yaml"); fi

compose() {
    local files=("${compose_files[@]}")
    [[ ${SNS_CONTROLLERS:-1} == 1 ]] || files+=(-f "$here/compose.two_controllers.yaml")
    "${COMPOSE[@]}" -p "$SNS_PROJECT" "${files[@]}" "$@"
}

# Debian's own image. If no image registry can be reached, the same image is made from Debian's packages.
ensure_base() {
    "${DOCKER[@]}" image inspect "$base_image" > /dev/null 2>&1 && return 0
    local began=$EPOCHREALTIME scratch
    announce pull "pulling debian:$suite-slim" "a minute at most"
    if timeout 60 "${DOCKER[@]}" pull -q "debian:$suite-slim" > /dev/null; then
        "${DOCKER[@]}" tag "debian:$suite-slim" "$base_image"
        took pull "$began"
        return
    fi
    has_command mmdebstrap || apt_install mmdebstrap debian-archive-keyring
    announce base "debian:$suite-slim cannot be pulled: making it from Debian's packages"
    began=$EPOCHREALTIME
    scratch=$(mktemp -d)
    # A site without an image registry may have a frozen mirror, whose Release file is out of date.
    as_root mmdebstrap --variant=apt --include=ca-certificates \
        --aptopt='Acquire::Check-Valid-Until "false"' \
        --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr "$suite" "$scratch/base.tar" > "$scratch/log" 2>&1 \
        || { tail -n 20 "$scratch/log" >&2; return 1; }
    "${DOCKER[@]}" import "$scratch/base.tar" "$base_image" > /dev/null
    as_root rm -rf "$scratch"
    took base "$began"
}

# Pack the build context: only the files that the Dockerfile copies.
context() {
    local scratch=$1 bundle=/etc/ssl/certs/ca-certificates.crt
    if [[ -r ${SSL_CERT_FILE:-$bundle} ]]; then
        cp -L "${SSL_CERT_FILE:-$bundle}" "$scratch/ca-bundle.crt"
    else
        : > "$scratch/ca-bundle.crt"
    fi
    tar -c --exclude=__pycache__ --exclude=docs/science/results --exclude='*.so' --exclude='*.o' --owner=0 --group=0 --mode=go=rX \
        -C "$root" containers conf docs/science plugins slurm_sns tests/resctrl_emulator pyproject.toml README.md LICENSE \
        -C "$scratch" ca-bundle.crt \
        || (($? == 1)) # 1: a directory changed meanwhile; tests that run at the same time write a __pycache__ there
}

# build_image NAME DOCKERFILE [ARGUMENT=VALUE...]
build_image() {
    docker_ensure
    ensure_base
    local began=$EPOCHREALTIME scratch log arguments=()
    scratch=$(mktemp -d)
    log=$scratch/build.log
    local name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [[ -z ${!name:-} ]] || arguments+=(--build-arg "$name")
    done
    for name in "${@:3}"; do arguments+=(--build-arg "$name"); done
    announce "image $1" "building the image $1: minutes where something in it has changed"
    context "$scratch" > "$scratch/context.tar"
    [[ ! -s $scratch/ca-bundle.crt ]] || arguments+=(--build-arg PIP_CERT=/opt/build/ca-bundle.crt)
    # The classic builder: BuildKit's plugin is not installed everywhere.
    if ! DOCKER_BUILDKIT=0 "${DOCKER[@]}" build --rm --force-rm -t "$1" -f "$2" \
        --build-arg "BASE=$base_image" "${arguments[@]}" - < "$scratch/context.tar" > "$log" 2>&1; then
        tail -n 60 "$log" >&2
        rm -rf "$scratch"
        return 1
    fi
    rm -rf "$scratch"
    # Remove images that were replaced. Younger ones stay: another clone may be building them now.
    "${DOCKER[@]}" image prune -f --filter label=slurm_sns.cluster --filter until=10m > /dev/null
    took "image $1" "$began"
    say "image built in $(seconds_since "$began")"
}

# Wait while `run --beside` makes the image: it then holds a lock on the file $SNS_IMAGE_LOCK.
wait_for_image() { [[ -z ${SNS_IMAGE_LOCK:-} ]] || flock -s "$SNS_IMAGE_LOCK" true; }

# Debian trixie's Slurm 24.11 has no pyslurm.
cluster_build() {
    local arguments=()
    [[ $suite != trixie ]] || SNS_PYSLURM=no
    [[ ${SNS_PYSLURM:-yes} == yes ]] || arguments=(PYSLURM=no)
    build_image "$SNS_PROJECT" containers/Dockerfile "${arguments[@]}"
}

build_site() {
    docker_ensure
    wait_for_image
    "${DOCKER[@]}" image inspect "$SNS_PROJECT" > /dev/null 2>&1 || cluster_build # the site's package mirror takes pyslurm from it
    build_image "$SNS_PROJECT-site" containers/site/Dockerfile "CLUSTER=$SNS_PROJECT"
}

# Nothing answers a name server's questions there. Slurm 24.11 asks for the name of 0.0.0.0 when it reads its configuration
# again, and by default would wait for ten seconds, which is all the time that scontrol gives it.
IMPATIENT=(--dns-opt timeout:1 --dns-opt attempts:1)

# A site without slurm_sns, for the test of the pages for admins: one container with its own Slurm.
cluster_site() {
    build_site
    remove_site
    # A network without access to the internet: the admin's commands must fetch everything from the site's mirror.
    "${DOCKER[@]}" network create --internal "$SNS_PROJECT-site" > /dev/null
    "${DOCKER[@]}" run -d --init --network "$SNS_PROJECT-site" "${IMPATIENT[@]}" --hostname site \
        --name "$SNS_PROJECT-site" "$SNS_PROJECT-site" > /dev/null
}

remove_site() {
    "${DOCKER[@]}" rm -f -v "$SNS_PROJECT-site" > /dev/null 2>&1 || true
    "${DOCKER[@]}" network rm "$SNS_PROJECT-site" > /dev/null 2>&1 || true
}

# A controller of a thousand nodes without slurmd, from the cluster's image; it needs no other container.
cluster_thousand() {
    docker_ensure
    wait_for_image
    "${DOCKER[@]}" image inspect "$SNS_PROJECT" > /dev/null 2>&1 || cluster_build
    remove_thousand
    local options=()
    if [[ ${SNS_ACCOUNTING:-0} != 0 ]]; then # by the slurmdbd of the mini cluster, which runs
        options=(--network "${SNS_PROJECT}_default" -v "${SNS_PROJECT}_secrets:/run/cluster" -e SNS_ACCOUNTING=1)
    fi
    options+=(-e "SNS_SLURMDS=${SNS_SLURMDS:-0}" -e "SNS_NODES=${SNS_NODES:-1000}")
    "${DOCKER[@]}" run -d --init --hostname thousand --name "$SNS_PROJECT-thousand" "${options[@]}" \
        "$SNS_PROJECT" thousand > /dev/null
    local deadline=$((SECONDS + ready_timeout_s))
    until "${DOCKER[@]}" exec "$SNS_PROJECT-thousand" cluster-health thousand > /dev/null 2>&1; do
        if ((SECONDS > deadline)) || ! is_running thousand; then
            say "the controller of a thousand nodes does not get ready"
            "${DOCKER[@]}" logs --tail 30 "$SNS_PROJECT-thousand" >&2 || true
            return 1
        fi
        sleep 0.5
    done
    say "controller of a thousand nodes ready"
}

remove_thousand() {
    "${DOCKER[@]}" rm -f -v "$SNS_PROJECT-thousand" > /dev/null 2>&1 || true
}

# The packages for the distribution and the Slurm that the cluster's image has.
cluster_packages() {
    local folder=${1:-$root/dist/packages/$suite}
    docker_ensure
    "${DOCKER[@]}" image inspect "$SNS_PROJECT" > /dev/null 2>&1 || cluster_build # pyslurm comes from it
    build_image "$SNS_PROJECT-packages" containers/packaging/Dockerfile "CLUSTER=$SNS_PROJECT" \
        "SNS_VERSION=${SNS_VERSION:-}" "SNS_MAINTAINER=${SNS_MAINTAINER:-}"
    mkdir -p "$folder"
    "${DOCKER[@]}" run --rm --network none "$SNS_PROJECT-packages" tar -c -C /opt/packages . | tar -x --no-same-owner -C "$folder"
    say "packages in $folder"
}

# The plain site again, with systemd as its first process instead of what stands in for it. systemd wants cgroup v2, which
# is mounted there also on a host that uses v1.
cluster_packaged() {
    build_site
    remove_packaged
    "${DOCKER[@]}" network create --internal "$SNS_PROJECT-packaged" > /dev/null
    "${DOCKER[@]}" run -d --network "$SNS_PROJECT-packaged" "${IMPATIENT[@]}" --hostname site --name "$SNS_PROJECT-packaged" \
        --cgroupns private --cap-add SYS_ADMIN --security-opt apparmor=unconfined --security-opt seccomp=unconfined \
        --tmpfs /run --tmpfs /tmp -e container=docker "$SNS_PROJECT-site" \
        sh -c 'rm /usr/local/sbin/systemctl && mount -t cgroup2 none /sys/fs/cgroup && exec /usr/lib/systemd/systemd' > /dev/null
}

remove_packaged() {
    "${DOCKER[@]}" rm -f -v "$SNS_PROJECT-packaged" > /dev/null 2>&1 || true
    "${DOCKER[@]}" network rm "$SNS_PROJECT-packaged" > /dev/null 2>&1 || true
}

is_running() { [[ $("${DOCKER[@]}" inspect -f '{{.State.Running}}' "$SNS_PROJECT-$1") == true ]]; }

cluster_up() {
    cluster_build
    is_up_to_date || remove_cluster
    start_cluster
}

# Whether compose would keep the containers that there are. Those of another image or another configuration are removed
# first: where compose 1.29 replaces them one by one, their network can never be removed again.
is_up_to_date() {
    local running wanted
    running=$("${DOCKER[@]}" inspect -f '{{.Image}} ctl {{index .Config.Labels "com.docker.compose.config-hash"}}' \
        "$SNS_PROJECT-ctl" 2> /dev/null) || return 0 # there is none
    wanted="$("${DOCKER[@]}" image inspect -f '{{.Id}}' "$SNS_IMAGE") $(compose config --hash ctl)"
    [[ $running == "$wanted" ]]
}

# Start the mini cluster named $SNS_PROJECT from the image $SNS_IMAGE, and wait until every node is idle.
start_cluster() {
    local began=$EPOCHREALTIME health
    announce "cluster" "starting the cluster $SNS_PROJECT, until every node is idle" "less than a minute"
    compose up -d --remove-orphans > /dev/null 2>&1 || { compose up -d; return 1; }
    local deadline=$((SECONDS + ready_timeout_s))
    until health=$("${DOCKER[@]}" exec "$SNS_PROJECT-ctl" cluster-health ctl 2>&1); do
        if ((SECONDS > deadline)) || ! is_running ctl; then
            say "the cluster does not get ready: $health"
            compose ps >&2
            "${DOCKER[@]}" logs --tail 30 "$SNS_PROJECT-ctl" >&2 || true
            return 1
        fi
        sleep 0.5
    done
    took "cluster" "$began"
    say "cluster ready in $(seconds_since "$began")"
}

# A second cluster beside the first, for some of the cluster's tests: most of their time is waiting.
cluster_second() {
    docker_ensure
    wait_for_image
    "${DOCKER[@]}" image inspect "$SNS_IMAGE" > /dev/null 2>&1 || cluster_build
    remove_second
    SNS_PROJECT=$SNS_PROJECT-second start_cluster
}

# Prometheus, which scrapes the exporter on the controller each second, and the exporter; the cluster must be up.
cluster_prometheus() {
    docker_ensure
    build_image "$SNS_IMAGE-prometheus" containers/prometheus/Dockerfile
    "${DOCKER[@]}" exec "$SNS_PROJECT-ctl" sns-daemon restart exporter --address 0.0.0.0
    compose --profile prometheus up -d --no-deps prometheus > /dev/null 2>&1 \
        || compose --profile prometheus up -d --no-deps prometheus
    say "Prometheus runs in the container $SNS_PROJECT-prometheus, port 9090"
}

remove_prometheus() { "${DOCKER[@]}" rm -f -v "$SNS_PROJECT-prometheus" > /dev/null 2>&1 || true; }

remove_second() { SNS_PROJECT=$SNS_PROJECT-second remove_cluster; }

# A mini cluster whose slurmctld has a backup, for the tests of that: one that no other test uses.
cluster_two() {
    docker_ensure
    wait_for_image
    "${DOCKER[@]}" image inspect "$SNS_IMAGE" > /dev/null 2>&1 || cluster_build
    remove_two
    SNS_PROJECT=$SNS_PROJECT-two SNS_CONTROLLERS=2 start_cluster
}

remove_two() { SNS_PROJECT=$SNS_PROJECT-two SNS_CONTROLLERS=2 remove_cluster; }

# A job that Slurm has suspended is frozen. With cgroup v1 nothing can kill it then, and Docker cannot remove its container.
thaw_jobs() {
    local container state
    for container in $("${DOCKER[@]}" ps --quiet --no-trunc --filter "name=^$SNS_PROJECT-"); do
        find /sys/fs/cgroup/freezer -name freezer.state -path "*/$container/*" 2> /dev/null | while read -r state; do
            if ! grep -q THAWED "$state"; then echo THAWED > "$state"; fi
        done || true
    done
}

# The nodes that some tests start (Cluster.start_nodes in cluster.py).
remove_later_nodes() { "${DOCKER[@]}" rm -f -v "$SNS_PROJECT"-{f1,f2,g1,g2,g3} > /dev/null 2>&1 || true; }

remove_cluster() {
    thaw_jobs
    remove_prometheus
    remove_later_nodes
    compose down --volumes --remove-orphans --timeout 1 > /dev/null 2>&1 \
        || compose down --volumes --remove-orphans --timeout 1
}

cluster_down() {
    if engine_answers; then
        find_compose
        remove_site
        remove_packaged
        remove_thousand
        remove_second
        remove_two
        remove_cluster
        say "containers, network and volumes of $SNS_PROJECT removed; the image stays for the next time"
    fi
    docker_release
}

# For `run`: remove a cluster that is there and start a new one.
cluster_fresh() {
    docker_ensure
    remove_cluster
    cluster_up
}

cluster_shell() {
    engine_answers || { say "no cluster runs: make cluster-up"; return 1; }
    local user=${1:-alice}
    "${DOCKER[@]}" exec -it -u "$user" -w "$([[ $user == alice || $user == bob ]] && echo "/home/$user" || echo /)" \
        "$SNS_PROJECT-ctl" bash -l
}

# Start COMMAND in a session of its own, so that `stop` can interrupt all its processes, and so that its priority can be
# set: the kernel shares the processor between sessions first. Sets `started` to its process id. bash lets what it starts
# in the background ignore SIGINT; COMMAND must not.
start() {
    setsid env --default-signal=INT,QUIT "$@" < /dev/null &
    started=$!
    attended+=("$started")
}

# Start COMMAND as `start` does, with what nobody else needs of the processor.
start_last() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    start bash -c '{ echo 19 > /proc/self/autogroup; } 2> /dev/null; exec nice -n 19 "$@"' - "$@"
}

# Wait for a process that `start` has started, and return its exit code.
attend() {
    local code=0 each left=()
    wait "$1" || code=$?
    for each in "${attended[@]}"; do [[ $each == "$1" ]] || left+=("$each"); done
    attended=("${left[@]}")
    return "$code"
}

# Interrupt this script when the calling make is interrupted or killed. When only make gets the signal, it waits for us,
# and when it is killed, it ends without us. Both show in /proc: while make handles a signal, it blocks SIGINT (bit 1 of
# the mask); once make is gone, our parent is another process.
watch_caller() {
    local caller=$1 before blocked parent
    before=$(status_field SigBlk "$caller")
    while sleep 0.5; do
        blocked=$(status_field SigBlk "$caller")
        parent=$(status_field PPid $$)
        if [[ $parent != "$caller" ]] || ((0x${blocked:-2} & ~0x${before:-0} & 2)); then
            kill -INT $$ 2> /dev/null
            return 0
        fi
    done
}

status_field() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$2/status" 2> /dev/null || true; }

attended=()
started=
watcher=
scratch=
shown=

finish() {
    local code=$?
    trap '' INT TERM HUP
    trap - EXIT
    [[ -z $watcher ]] || kill "$watcher" 2> /dev/null || true
    if ((${#attended[@]})); then
        say "interrupted"
        stop "${attended[@]}"
    fi
    if [[ -n $shown ]]; then wait "$shown" || true; elif [[ -n $scratch ]]; then cat "$scratch/output"; fi
    [[ -z $scratch ]] || rm -rf "$scratch"
    cluster_down || code=1
    exit "$code"
}

# Interrupt process groups, and kill them if they do not end within 10 s.
stop() {
    local group tries=100
    for group in "$@"; do kill -INT -- "-$group" 2> /dev/null || true; done
    for group in "$@"; do
        while kill -0 -- "-$group" 2> /dev/null; do
            ((--tries > 0)) || kill -KILL -- "-$group" 2> /dev/null || break
            sleep 0.1
        done
    done
}

cluster_run() {
    local other=()
    while [[ " $* " == *" --beside "* ]]; do
        [[ $1 == --beside ]] || other+=("$1")
        shift
    done
    trap finish EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    watch_caller "$PPID" &
    watcher=$!
    start "$here/docker.sh" ensure
    attend "$started"
    # Tests and the demo run docker with the command that works for this user.
    engine_answers
    export DOCKER_COMMAND="${DOCKER[*]}"
    if ((${#other[@]})); then run_beside "$@"; fi
    start "$0" fresh
    attend "$started"
    start "$@"
    attend "$started"
}

# Run `other` (an array of the caller's) and the given command at the same time. The command's output is kept until
# `other` has ended, and shown from then on. Does not return.
run_beside() {
    local lock code=0 other_code=0 command
    scratch=$(mktemp -d)
    : > "$scratch/output"
    export SNS_IMAGE_LOCK=$scratch/lock
    exec {lock}> "$SNS_IMAGE_LOCK"
    flock "$lock"
    say "making the cluster meanwhile; what its tests print comes after these"
    # shellcheck disable=SC2016 # expanded by the inner shell
    start bash -c 'lock=$1 && shift && "$0" fresh && exec {lock}>&- && exec "$@"' "$0" "$lock" "$@" > "$scratch/output" 2>&1
    command=$started
    exec {lock}>&- # only the command holds the lock now: until the image is made, or until the command has ended
    start_last "${other[@]}"
    attend "$started" || other_code=$?
    if ((other_code >= 2 && other_code != 5)); then
        say "stopped: so are the cluster's tests"
        exit "$other_code"
    fi
    show "$command"
    attend "$command" || code=$?
    # 5: pytest found no test to run. That is the result only if both say so.
    ((code == 5 && other_code != 5)) && code=0
    ((other_code == 5 && code != 5)) && other_code=0
    exit $((code ? code : other_code))
}

# Show the kept output of a process, and follow it until the process ends.
show() {
    tail -n +1 -s 0.2 -f --pid="$1" "$scratch/output" &
    shown=$!
    wait "$shown" || true
}

verb=${1:-}
shift || true
case $verb in
    build | up | fresh | down | run | shell | site | thousand | second | two | prometheus | packages | packaged) "cluster_$verb" "$@" ;;
    site-down | thousand-down | second-down | two-down | packaged-down)
        engine_answers
        find_compose
        "remove_${verb%-down}"
        ;;
    compose)
        docker_ensure
        compose "$@"
        ;;
    *)
        sed -n '2,/^set /{/^set /!s/^# \{0,1\}//p}' "$0" >&2
        exit 2
        ;;
esac
