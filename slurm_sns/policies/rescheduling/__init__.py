"""Cost-based rescheduling (2010): pools suspend jobs for urgent ones, and a suspended job may restart in another pool.

It makes no plans on snapshots: `sim/replay/pool_replay` replays a whole site by these compiled modules.
tests/oracles/rescheduling has each of their ideas in plain Python and exact numbers.
"""
