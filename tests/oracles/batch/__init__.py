"""FCFS and EASY over any way of placing, as plans; tests/sim/replay compares them with the compiled pass."""
