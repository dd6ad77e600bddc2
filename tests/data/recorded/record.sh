#!/bin/bash
# Record what Slurm's commands print, as test data: record.sh DIRECTORY, as root in a container of its own.
# It overwrites /etc/slurm, starts a cluster of emulated nodes on this host, fills it with jobs and asks. See README.md.
set -euo pipefail
out=$1
export DEBIAN_FRONTEND=noninteractive TZ=UTC LC_ALL=C.UTF-8
if ! command -v slurmdbd mariadbd > /dev/null; then
    printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends mariadb-server munge procps slurm-client slurmctld slurmd slurmdbd \
        slurm-wlm-basic-plugins slurm-wlm-mysql-plugin slurm-wlm-plugins
fi
for user in alice:2001 bob:2002; do
    id "${user%:*}" > /dev/null 2>&1 || useradd -u "${user#*:}" -M -d /tmp "${user%:*}"
done

rm -rf /etc/slurm && mkdir /etc/slurm
cat > /etc/slurm/slurm.conf << 'CONF'
ClusterName=recorded
SlurmctldHost=login
SlurmUser=slurm
StateSaveLocation=/var/lib/slurm/recorded
SlurmdSpoolDir=/var/lib/slurm/%n
SlurmctldPidFile=/run/slurm/slurmctld.pid
SlurmdPidFile=/run/slurm/%n.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
MailProg=/bin/true
ReturnToService=2
MinJobAge=3600
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=1000
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=2000
PriorityWeightTRES=CPU=10,Mem=5
PreemptType=preempt/qos
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=login
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/llc,license/matlab
AccountingStoreFlags=job_comment
SchedulerParameters=bf_interval=5,bf_continue
GresTypes=llc,gpu
Licenses=matlab:2
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=7200
SuspendExcNodes=n[1-7]
ResumeTimeout=3600
NodeName=DEFAULT CPUs=28 Sockets=2 CoresPerSocket=14 ThreadsPerCore=1 RealMemory=128000
NodeName=n[1-3] Port=[17001-17003] Feature=ib,avx512 Gres=llc:20
NodeName=n[4-5] Port=[17004-17005] Feature=opa,avx512 Gres=llc:20 Weight=10
NodeName=n6 Port=17006 State=FUTURE
NodeName=n7 Port=17007 CPUs=16 Sockets=1 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=64000 MemSpecLimit=4000 CoreSpecCount=1 Gres=gpu:a100:2
NodeName=n8 Port=17008 State=CLOUD Feature=cloud
PartitionName=main Nodes=n[1-5],n8 Default=YES MaxTime=2-00:00:00 DefaultTime=60
PartitionName=small Nodes=n7 PriorityTier=10 MaxNodes=1 DefMemPerNode=2000 TRESBillingWeights=CPU=1.0,Mem=0.25G
PartitionName=closed Nodes=n[1-2] State=DOWN OverSubscribe=EXCLUSIVE PreemptMode=OFF
CONF
printf 'NodeName=n[1-5] Name=llc Count=20 Flags=CountOnly\nNodeName=n7 Name=gpu Type=a100 File=/dev/null,/dev/zero\n' \
    > /etc/slurm/gres.conf
[[ $(slurmctld -V) == *" 22."* ]] || echo 'CgroupPlugin=disabled' > /etc/slurm/cgroup.conf  # there is no such word yet
cat > /etc/slurm/slurmdbd.conf << 'CONF'
DbdHost=login
SlurmUser=slurm
PidFile=/run/slurm/slurmdbd.pid
LogFile=/var/log/slurm/slurmdbd.log
StorageType=accounting_storage/mysql
StorageUser=slurm
StoragePass=recorded
CONF
chown slurm /etc/slurm/slurmdbd.conf && chmod 600 /etc/slurm/slurmdbd.conf
{ echo "127.0.0.1 login"; for n in {1..8}; do echo "127.0.1.$n n$n"; done; } >> /etc/hosts
install -d -o slurm /run/slurm /var/lib/slurm /var/lib/slurm/recorded /var/log/slurm
install -d -o munge -m 755 /run/munge && install -d -o mysql /run/mysqld

until_true() { for _ in {1..120}; do "$@" > /dev/null 2>&1 && return; sleep 0.5; done; echo "not in 60 s: $*" >&2; return 1; }
[[ -e /etc/munge/munge.key ]] || { head -c 1024 /dev/urandom > /etc/munge/munge.key; chown munge /etc/munge/munge.key; chmod 400 /etc/munge/munge.key; }
setpriv --reuid=munge --regid=munge --clear-groups munged
[[ -e /var/lib/mysql/mysql ]] || mariadb-install-db --user=mysql > /dev/null
mariadbd --user=mysql --innodb-lock-wait-timeout=900 > /dev/null 2>&1 &
until_true mariadb -e 'select 1'
mariadb -e "create database slurm_acct_db; create user slurm@localhost identified by 'recorded';
            grant all on slurm_acct_db.* to slurm@localhost"
slurmdbd
until_true sacctmgr -n show cluster
[[ $(sacctmgr -n show cluster) ]] || sacctmgr -iQ add cluster recorded
slurmctld
until_true scontrol ping
has_tres() { [[ $(sacctmgr -n show tres) == *matlab* ]]; }  # slurmctld has told slurmdbd what AccountingStorageTRES names
until_true has_tres
sacctmgr -iQ add account physics fairshare=3 grptres=gres/llc=40 description=p organization=o
sacctmgr -iQ add account chemistry fairshare=1 description=c organization=o
sacctmgr -iQ add user alice account=physics maxtres=cpu=100
sacctmgr -iQ add user bob account=chemistry
sacctmgr -iQ add qos high priority=100 preempt=normal flags=DenyOnLimit maxtresperuser=node=2
sacctmgr -iQ modify user alice,bob set qos+=high
for n in 1 2 3 4 7; do mkdir -p "/var/lib/slurm/n$n"; slurmd -N "n$n"; done
up() { [[ $(sinfo -h -N -p main,small -t idle -o %N | sort -u | wc -l) -ge 5 ]]; }
until_true up

cd /tmp
as() { local user=$1; shift; setpriv --reuid="$user" --regid="$user" --init-groups env HOME=/tmp USER="$user" "$@"; }
submit() { local user=$1; shift; as "$user" sbatch --parsable -o /dev/null --wrap='sleep 3000' "$@"; }
scontrol create reservation ReservationName=upkeep StartTime=now+2hours Duration=60 Nodes=n[2-3] Users=root Flags=MAINT,IGNORE_JOBS > /dev/null
scontrol create reservation ReservationName=course StartTime=now+5hours Duration=30 NodeCnt=1 PartitionName=main Accounts=physics > /dev/null
scontrol update NodeName=n5 State=DOWN Reason='no power'
scontrol update NodeName=n4 State=DRAIN Reason='fan 2 broken; see ticket=17 "soon"'

# What runs, ends, or is touched while it runs. Then what waits. Each has its number in its name.
submit alice -J 1-runs -n4 --mem-per-cpu=1000 -t 60 -w n1
submit alice -J 2-nodes -N2 --ntasks-per-node=8 --mem=16G --gres=llc:4 -t 60 -w n[2-3]
submit bob   -J 3-threads -p small -n2 -c2 --threads-per-core=1 --gpus=a100:1 -t 30
submit bob   -J 4-suspended -n2 -t 30 -w n1
submit bob   -J 5-requeued -n1 -t 30 -w n1
submit bob   -J 6-array-runs --array=1-3 -n1 -t 30 -w n2
as bob sbatch --parsable -o /dev/null -J 7-ended -n1 -t 5 -w n1 --wrap=true
as bob sbatch --parsable -o /dev/null -J 8-failed -n1 -t 5 -w n1 --wrap=$'true\nfalse'
submit bob   -J 9-cancelled -n1 -t 5 -w n1
as bob salloc -Q --no-shell -J 10-salloc -n1 -t 20 -w n3
submit alice -J 11-powering -n1 -t 20 -w n8 -C cloud
sleep 8
scontrol suspend 4; scontrol requeue 5; scancel -n 9-cancelled
submit alice -J 12-tasks -n90 -t 30
submit alice -J 13-one-node -N1 -n16 --exclusive -t 30
submit alice -J 14-range -N2-4 -n56 --mem-per-cpu=2G -t 2-00:00:00
submit alice -J 15-held -H -n40 -t 30 --nice=50
submit alice -J 16-array --array=0-5,9%2 -n28 -t 10 --begin=now+1hour
submit alice -J 17-after --dependency=afterok:1:2 -n1 -t 30 -C 'ib&avx512' -x n3
submit alice -J 18-het -n1 --mem=1G -t 30 : -n2 -p small --mem=500M
submit alice -J 19-licence -n2 -L matlab:2 -t 30 --begin=now+1hour
submit alice -J 20-gpus -p small -n2 --gpus-per-task=1 --cpus-per-gpu=2 --mem-per-gpu=1G -t 30
submit alice -J 21-closed -p closed -n1 -t 30
submit alice -J 22-down -w n5 -n1 -t 30
submit alice -J 23-course --reservation=course -n1 -t 10
submit alice -J 24-shape -N1 -n4 -B 2:2 --ntasks-per-socket=2 --contiguous --switches=1@10 -t 90 --begin=now+1hour
submit bob   -J 25-both -p main,small -n1 -t 30 --qos=high --time-min=10 --no-requeue --deadline=now+2days --begin=now+1hour
submit bob   -J $'26 a b=c JobState=RUNNING "q" \'s\' ü|;%\t\\x' --comment $'two  blanks, NodeList=n9 "x" ü\ttab=1' -n1 -H -t 30
submit bob   -J 27-forged --comment='x UserId=root(0) GroupId=root(0) Command=/x' -n1 -H -t 30
submit bob   -J $'28\nJobId=1 JobName=x' -n1 -H -t 30
submit bob   -J '29 UserId=root(0) GroupId=root(0)' -n1 -H -t 30
extra=(--extra='a=1 b')
[[ $(sbatch --help) == *--extra=* ]] || extra=()
submit bob   -J 30-extra -n1 -H -t 30 "${extra[@]}" --prefer=ib --mem=0 --oversubscribe
as bob sbatch --parsable -o /dev/null -J 31-wrapped -n1 -H -t 30 --comment=sns:off --wrap=$'sleep 1\n\nJobId=x\nsleep 2'
submit bob   -J $'32\nof three\nlines' --comment=$'line\nbreak' -n1 -H -t 30
submit bob   -J 33-held-small -n16 -H -t 30
scontrol update JobId="$(squeue -h -n 30-extra -o %A)" AdminComment='seen by us; JobState=FAILED'
scontrol hold "$(squeue -h -n 21-closed -o %A)"
sleep 12

rm -rf "$out" && mkdir -p "$out"
# keep NAME COMMAND: the answer in NAME.txt, a line for it in commands.tsv.
# Kernels are of no interest.
keep() { eval "$2" | sed -E 's/ OS=Linux [^ ]+ / OS=Linux 6.12.0 /' > "$out/$1.txt"; printf '%s\t%s\n' "$1" "$2" >> "$out/commands.tsv"; }
keep sacct "${SACCT:?the command of sns simulate --help}"
keep sinfo "sinfo -N -o '%N|%c|%m|%z|%w|%f|%R'"
keep nodes "scontrol -o show node"
export SLURM_TIME_FORMAT=%s
keep config "scontrol show config"
keep job "scontrol -a -o show job"
keep node "scontrol -a -d -o show node"
keep reservation "scontrol -a -o show reservation"
keep partition "scontrol -a -o show partition"
keep partitions "scontrol -a show partition -o"
limits=grptres,grptresmins,grptresrunmins,maxtres,maxtrespernode,maxtresmins
keep qos "sacctmgr -nP show qos format=name,priority,flags,preempt,preemptmode"
keep qos-limits "sacctmgr -nP show qos format=name,$limits,maxtrespu,maxtrespa,mintres,maxtresrunminspu,maxtresrunminspa"
keep shares "sacctmgr -nP show associations format=account,user,share"
keep limits "sacctmgr -nP show associations format=cluster,account,parentname,user,$limits"
