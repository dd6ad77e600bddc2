"""Beyond the paper on rescheduling: what remains of its gain at a site, and what further freedom adds."""
