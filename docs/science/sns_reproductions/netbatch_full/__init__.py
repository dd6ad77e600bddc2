"""Max-Jobs: the four pools at full size, at betas of the paper's figures and at betas of equal queueing."""
