"""DFRS, figure 1: average degradation factor against load, without a rescheduling penalty and with one."""
