"""DFRS, table I: degradation factors of nine algorithms on three workloads, with a penalty of 5 minutes."""
