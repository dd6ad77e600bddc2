"""Max-Jobs: a joint choice among queued jobs (the paper's idea), and lookahead at arrivals (ours), on four pools."""
