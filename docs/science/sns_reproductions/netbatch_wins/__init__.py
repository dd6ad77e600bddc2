"""Max-Jobs, figure 16: in how many cycles each heuristic reaches the maximum of the portfolio."""
