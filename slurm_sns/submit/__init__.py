"""What happens when a job is submitted: hints, mark, judgement, and the table the Lua module decides by."""
