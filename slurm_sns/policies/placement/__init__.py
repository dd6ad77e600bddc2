"""The shared machinery of placing jobs on nodes: queue order, feasible -> score -> select, one cycle."""
