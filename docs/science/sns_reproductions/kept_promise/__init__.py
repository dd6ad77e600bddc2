"""Max-Jobs that keeps nodes until a job's start, beside EASY and beside the papers' rule, on logs of real sites."""
