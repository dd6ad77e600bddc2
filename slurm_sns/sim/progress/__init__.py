"""How jobs advance once they are started: fixed run times, contention, shares of CPU."""
