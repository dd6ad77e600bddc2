"""What the hardware counts of a job: instructions and cycles, bytes moved to and from memory, bytes of cache.

`NodeCounters` (module node_counters) joins the sources: perf events, resctrl monitoring files, memory controllers.
"""
