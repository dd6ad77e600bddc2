"""What outlives a process: records, decisions and snapshots in a database; heartbeat and kill switch as files."""
