"""The scheduler's Unix socket, through which the command line, the agents and the web page ask it."""
