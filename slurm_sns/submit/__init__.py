"""What happens when a job is submitted: hints, mark, judgement, and the table by which the Lua module decides."""
