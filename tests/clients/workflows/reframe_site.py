"""ReFrame's configuration for the mini cluster, otherwise with ReFrame's defaults."""

site_configuration = {
    "systems": [
        {
            "name": "mini",
            "hostnames": ["ctl"],
            "partitions": [
                {
                    "name": name,
                    "scheduler": scheduler,
                    "launcher": "srun",
                    "access": ["-p main"],
                    "environs": ["builtin"],
                    "max_jobs": 4,
                    # Looks at each poll why jobs wait, not at every tenth.
                    "sched_options": {"slurm_pending_job_reason_poll_freq": 1} if scheduler == "slurm" else {},
                }
                for name, scheduler in (("main", "slurm"), ("squeue", "squeue"))
            ],
        }
    ],
}
