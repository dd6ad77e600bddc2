"""The figures and tables of dynamic fractional resource scheduling (IPDPS 2010)."""
