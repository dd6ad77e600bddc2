"""The gate: a begin time in the future, which holds a job back until we place it. All decisions here are pure.

job_status.py (the state table), orders.py (the changes that follow from it), leases.py (when a gate is renewed).
"""
