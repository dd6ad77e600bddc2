"""Beyond the paper on Spread-n-Share: the combined policy, and two ideas for fewer broken alphas."""
