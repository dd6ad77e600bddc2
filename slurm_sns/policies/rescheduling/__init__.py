"""Cost-based rescheduling (2010): pools suspend jobs for urgent ones, and a suspended job may restart in another pool.

Each idea is one module in plain Python and exact numbers.
"""
