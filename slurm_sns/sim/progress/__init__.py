"""How jobs advance once they are started: fixed run times, or contention."""
