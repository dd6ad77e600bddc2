"""What happens when a job is submitted: hints, record, judgement, and the table by which the Lua module decides."""
