"""Dynamic fractional resource scheduling (DFRS, IPDPS 2010): jobs share the CPU of nodes by fractions.

Each idea is one module in plain Python and exact numbers; modules whose names end in `_kernel` are compiled twins.
"""
