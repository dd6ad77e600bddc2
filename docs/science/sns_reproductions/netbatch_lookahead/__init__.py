"""Max-Jobs, lookahead: what it would add, the future work that the paper names, on its four pools."""
