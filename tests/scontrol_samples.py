"""What `scontrol` prints, in the forms of four releases, written by hand so that a test can change any field.

Those of 24.11.5 and 26.05.5 have the fields of the recorded answers in tests/data/recorded, in their order
(tests/slurm/test_recorded_releases.py). Those of 25.05 and 25.11 are from Slurm's sources alone.

The job is that of tests/slurm/recorded.py, which pyslurm has shown. Times are as `SLURM_TIME_FORMAT=%s` prints them.
"""

#: The fields of a job, in the order in which scontrol prints them; None is a field that this release does not print.
JOB: dict[str, str | None] = {
    "JobId": "1",
    "ArrayJobId": None,
    "ArrayTaskId": None,
    "ArrayTaskThrottle": None,
    "HetJobId": None,
    "JobName": "wrap",
    "UserId": "alice(2001)",
    "GroupId": "alice(2001)",
    "MCS_label": "N/A",
    "Priority": "1000",
    "Nice": "0",
    "Account": "physics",
    "QOS": "normal",
    "WCKey": None,
    "JobState": "PENDING",
    "Reason": "Resources",
    "Dependency": "(null)",
    "Requeue": "1",
    "Restarts": "0",
    "BatchFlag": "1",
    "Reboot": "0",
    "ExitCode": "0:0",
    "RunTime": "00:00:00",
    "TimeLimit": "00:01:00",
    "TimeMin": "N/A",
    "SubmitTime": "1795193945",
    "EligibleTime": "1795193945",
    "AccrueTime": "1795193945",
    "StartTime": "Unknown",
    "EndTime": "Unknown",
    "Deadline": "N/A",
    "SuspendTime": "None",
    "SecsPreSuspend": "0",
    "LastSchedEval": "1795193950",
    "Scheduler": "Main",
    "Partition": "plain",
    "AllocNode:Sid": "login:4711",
    "ReqNodeList": "(null)",
    "ExcNodeList": "(null)",
    "NodeList": "",
    "SchedNodeList": None,
    "NumNodes": "1-16",
    "NumCPUs": "16",
    "NumTasks": "16",
    "CPUs/Task": "1",
    "ReqB:S:C:T": "0:0:*:*",
    "ReqTRES": "cpu=16,mem=72000M,node=1,billing=16",
    "AllocTRES": "(null)",
    "Socks/Node": "*",
    "NtasksPerN:B:S:C": "0:0:*:*",
    "CoreSpec": "*",
    "MinCPUsNode": "1",
    "MinMemoryCPU": "4500M",
    "MinTmpDiskNode": "0",
    "Features": "(null)",
    "DelayBoot": "00:00:00",
    "Reservation": None,
    "OverSubscribe": "OK",
    "Exclusive": None,
    "Contiguous": "0",
    "Licenses": "(null)",
    "LicensesAlloc": None,
    "Network": "(null)",
    "Command": "(null)",
    "SubmitLine": None,
    "WorkDir": "/home/alice",
    "Comment": None,
    "AdminComment": None,
    "StdErr": "/home/alice/slurm-1.out",
    "StdIn": "/dev/null",
    "StdOut": "/home/alice/slurm-1.out",
    "TresPerNode": None,
    "TresPerTask": None,
    "NtasksPerTRES": None,
    "Switches": None,
}
#: How the releases differ: before 26.05 `-n16` shows Slurm's estimate of the nodes as the owner's choice, while Slurm
#: has not tried to place the job.
RELEASES: dict[str, dict[str, str | None]] = {
    "24.11.5": {"NumNodes": "1-1"},
    "25.05.8": {"NumNodes": "1-1", "LicensesAlloc": "(null)", "SubmitLine": "sbatch -p plain -t 1 -n16 --wrap=sleep 9"},
    "25.11.2": {"NumNodes": "1-1", "LicensesAlloc": "(null)", "SubmitLine": "sbatch -p plain -t 1 -n16 --wrap=sleep 9"},
    "26.05.5": {
        "OverSubscribe": "NO",
        "Exclusive": "NO",
        "LicensesAlloc": "(null)",
        "SubmitLine": "sbatch -p plain -t 1 -n16 --wrap=sleep 9",
    },
}
RUNNING = {
    "JobState": "RUNNING",
    "Reason": "None",
    "StartTime": "1795194262",
    "EndTime": "1795194322",
    "NodeList": "c1",
    "NumNodes": "1",
    "AllocTRES": "cpu=16,mem=72000M,node=1,billing=16",
}

NODE = {
    "NodeName": "c1",
    "Arch": "x86_64",
    "CoresPerSocket": "14",
    "CPUAlloc": "0",
    "CPUEfctv": "28",
    "CPUTot": "28",
    "CPULoad": "0.01",
    "AvailableFeatures": "ib,avx512",
    "ActiveFeatures": "ib,avx512",
    "Gres": "llc:20,membw:118",
    "GresDrain": "N/A",
    "GresUsed": "llc:0,membw:0",
    "NodeAddr": "c1",
    "NodeHostName": "c1",
    "Version": "26.05.5",
    "OS": "Linux 6.12.0 #1 SMP PREEMPT_DYNAMIC Debian 6.12.0-1 (2026-01-01)",
    "RealMemory": "128000",
    "AllocMem": "0",
    "FreeMem": "101532",
    "Sockets": "2",
    "Boards": "1",
    "State": "IDLE",
    "ThreadsPerCore": "1",
    "TmpDisk": "0",
    "Weight": "1",
    "Owner": "N/A",
    "MCS_label": "N/A",
    "Partitions": "main,plain",
    "BootTime": "1795190000",
    "SlurmdStartTime": "1795190000",
    "LastBusyTime": "1795190000",
    "ResumeAfterTime": "None",
    "CfgTRES": "cpu=28,mem=125G,billing=28,gres/llc=20,gres/membw=118",
    "AllocTRES": "",
    "CurrentWatts": "0",
    "AveWatts": "0",
}

PARTITION = {
    "PartitionName": "main",
    "AllowGroups": "ALL",
    "AllowAccounts": "ALL",
    "AllowQos": "ALL",
    "AllocNodes": "ALL",
    "Default": "YES",
    "QoS": "N/A",
    "DefaultTime": "NONE",
    "DisableRootJobs": "NO",
    "ExclusiveUser": "NO",
    "ExclusiveTopo": "NO",
    "GraceTime": "0",
    "Hidden": "NO",
    "MaxNodes": "UNLIMITED",
    "MaxTime": "UNLIMITED",
    "MinNodes": "0",
    "LLN": "NO",
    "MaxCPUsPerNode": "UNLIMITED",
    "MaxCPUsPerSocket": "UNLIMITED",
    "Nodes": "c[1-4]",
    "PriorityJobFactor": "1",
    "PriorityTier": "1",
    "RootOnly": "NO",
    "ReqResv": "NO",
    "OverSubscribe": "NO",
    "OverTimeLimit": "NONE",
    "PreemptMode": "OFF",
    "State": "UP",
    "TotalCPUs": "112",
    "TotalNodes": "4",
    "SelectTypeParameters": "NONE",
    "JobDefaults": "(null)",
    "DefMemPerNode": "UNLIMITED",
    "MaxMemPerNode": "UNLIMITED",
    "TRES": "cpu=112,mem=500G,node=4,billing=112",
}

CONFIG = """\
Configuration data as of 1795194000
AccountingStorageEnforce = none
AccountingStorageType   = (null)
ClusterName             = mini
DefMemPerCPU            = 4500
PreemptMode             = OFF
PreemptType             = (null)
PrioritySiteFactorPlugin = (null)
PriorityType            = priority/multifactor
PriorityWeightAge       = 1000
PriorityWeightAssoc     = 0
PriorityWeightFairShare = 0
PriorityWeightJobSize   = 0
PriorityWeightPartition = 0
PriorityWeightQOS       = 0
PriorityWeightTRES      = (null)
PrivateData             = none
SchedulerParameters     = bf_interval=10,bf_window=60
SelectTypeParameters    = CR_CORE_MEMORY
SlurmUser               = slurm(64030)
SLURM_CONF              = /etc/slurm/slurm.conf
SLURM_VERSION           = 26.05.5
TopologyPlugin          = topology/flat

Slurmctld(primary) at ctl is UP
"""


def line(fields: dict[str, str | None]) -> str:
    """One record in one line."""
    return " ".join(f"{key}={value}" for key, value in fields.items() if value is not None) + " \n"


def job(release: str = "26.05.5", **fields: str | None) -> str:
    """The job of that release; names of fields that are no Python names are given as `**{"CPUs/Task": "2"}`."""
    return line({**JOB, **RELEASES[release], **fields})


def node(**fields: str) -> str:
    return line({**NODE, **fields})


def partition(**fields: str) -> str:
    return line({**PARTITION, **fields})
