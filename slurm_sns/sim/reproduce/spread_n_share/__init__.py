"""The figures and tables of Spread-n-Share (SC'19)."""
