"""The scheduler's Unix socket: what the command line, the agents and the web page ask it."""
