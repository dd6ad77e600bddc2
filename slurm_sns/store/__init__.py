"""What must survive a restart: records, decisions and snapshots in a database; heartbeat and kill switch as files."""
