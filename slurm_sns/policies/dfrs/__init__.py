"""Dynamic fractional resource scheduling (DFRS, IPDPS 2010): jobs share the CPU of nodes by fractions.

Modules whose names end in `_kernel` are compiled. tests/oracles/dfrs has each of their ideas in plain Python and exact
numbers.
"""
