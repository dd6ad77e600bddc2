"""Reproductions of the paper on cost-based rescheduling of suspended jobs (Intel's distributed computing platform)."""
