"""What the looks of `sns observe` show together: reading looks.jsonl, following its jobs, the page of the report."""
