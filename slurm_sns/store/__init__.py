"""What is kept over a restart: tries, decisions and snapshots in a database; heartbeat and kill switch as files."""
