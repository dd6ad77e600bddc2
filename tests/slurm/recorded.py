"""Answers of a real Slurm 26.05.5 through pyslurm 25.11.2, as plain data: what is not named was None or empty."""

from types import SimpleNamespace

#: `sbatch -p plain -t 1 -n16` of the user with id 2001, with a gate an hour away.
GATE_S = 1795197545
JOB = {
    "id": 1,
    "user_id": 2001,
    "submit_time": 1795193945,
    "state": "PENDING",
    "name": "wrap",
    "account": "physics",
    "partition": "plain",
    "qos": "normal",
    "priority": 1000,
    "nice": 0,
    "requeue_count": 0,
    "admin_comment": None,
    "extra": None,
    "comment": None,
    "state_reason": "BeginTime",
    "required_nodes": None,
    "allocated_nodes": None,
    "ntasks": 16,
    "cpus": 16,
    "cpus_per_task": 1,
    "num_nodes": 1,
    "max_nodes": 16,
    "ntasks_per_node": None,
    "memory_per_cpu": 4500,
    "memory_per_node": None,
    "time_limit": 1,
    "time_limit_min": None,
    "eligible_time": GATE_S,
    "start_time": GATE_S,
    "end_time": None,
    "suspend_time": None,
    "run_time": 0,
    "is_requeueable": True,
    "dependencies": None,
    "is_batch_job": True,
    "is_cronjob": False,
    "array_id": None,
    "array_task_id": None,
    "array_tasks_waiting": None,
    "array_tasks_parallel": None,
    "heterogeneous_id": 0,
    "reservation": None,
    "constraints": [],
    "preferred_features": [],
    "excluded_nodes": None,
    "scheduled_nodes": None,
    "resource_sharing": "OK",
    "requires_contiguous_nodes": False,
    "required_switches": None,
    "licenses": [],
    "burst_buffer": None,
    "sockets_per_node": None,
    "cores_per_socket": None,
    "threads_per_core": None,
    "temporary_disk_per_node": None,
    "min_cpus_per_node": 1,
    "gres": {},
    "gres_per_node": {},
    "deadline": None,
    "federation_origin": None,
    "mail_types": [],
    "mail_user": ["alice"],
}

#: Of pyslurm.slurmctld.Config: the weights of priority/multifactor.
WEIGHTS = {
    **{f"priority_weight_{name}": 0 for name in ("assoc", "fair_share", "job_size", "partition", "qos")},
    "priority_weight_age": 1000,
    "priority_weight_tres": {},
}

NODE = {
    "name": "c1",
    "state": "IDLE",
    "reason": None,
    "partitions": ["main", "plain"],
    "effective_cpus": 28,
    "threads_per_core": 1,
    "real_memory": 128000,
    "memory_reserved_for_system": None,
    "allocated_cpus": 0,
    "allocated_memory": 0,
    "configured_gres": {"llc": 20, "membw": 118},
    "allocated_gres": {},
    "active_features": ["ib", "avx512"],
    "weight": 1,
    "sockets": 2,
}

#: Of pyslurm.Partition: -1 would not do for "no limit", so it has a word.
PARTITION = {
    "name": "main",
    "state": "UP",
    "priority_tier": 1,
    "min_nodes": 0,
    "max_nodes": "UNLIMITED",
    "max_time": "UNLIMITED",
    "preempt_mode": "OFF",
    "oversubscribe": "NO",
    "allowed_groups": ["ALL"],
    "allowed_accounts": ["ALL"],
    "denied_accounts": ["ALL"],
    "allowed_qos": ["ALL"],
    "denied_qos": ["ALL"],
    "default_memory_per_cpu": None,
    "default_memory_per_node": None,
}

#: What `-d singleton` shows while another job of that name runs: pyslurm cannot read `singleton(unfulfilled)`.
NO_DEPENDENCIES = {
    "after": [],
    "afterany": [],
    "afterburstbuffer": [],
    "aftercorr": [],
    "afternotok": [],
    "afterok": [],
    "singleton": False,
    "satisfy": "all",
}


def job(**fields) -> SimpleNamespace:
    return SimpleNamespace(**{**JOB, **fields})


def node(**fields) -> SimpleNamespace:
    return SimpleNamespace(**{**NODE, **fields})


def partition(**fields) -> SimpleNamespace:
    return SimpleNamespace(**{**PARTITION, **fields})


def running(**fields) -> SimpleNamespace:
    """Job 16: `-n2 --gres=llc:4,membw:10`, without a time limit."""
    shown = {
        "state": "RUNNING",
        "state_reason": "None",
        "priority": 1000,
        "allocated_nodes": "c1",
        "ntasks": 2,
        "cpus": 2,
        "num_nodes": 1,
        "max_nodes": None,
        "time_limit": None,
        "eligible_time": 1795194262,
        "start_time": 1795194262,
        "end_time": 1826730262,
    }
    return job(**{**shown, **fields})
