"""Matching jobs to nodes: eight heuristics and Max-Jobs.

Source: O. Shai, E. Shmueli, D. G. Feitelson, Heuristics for Resource Matching in Intel's Compute Farm, JSSPP 2013.
"""
