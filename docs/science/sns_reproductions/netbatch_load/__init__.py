"""Max-Jobs, figures 13, 14 and 15: wait, slowdown and queue length against load, four pools."""
