"""A production GPU cluster: how many GPUs stay without use under each policy, as demand rises and as time passes."""
