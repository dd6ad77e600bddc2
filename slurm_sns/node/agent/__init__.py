"""The agent of a node: it gives the runs there what they were granted, measures them, and reports what it measured."""
