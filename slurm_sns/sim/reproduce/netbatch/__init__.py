"""The figures and tables of the NetBatch paper on Max-Jobs."""
