"""When waiting jobs are expected to start: made beside the cycle, shown to owners, and kept as a record."""
