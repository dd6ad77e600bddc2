"""How each policy is simulated: a function reads a trace in the form that its policies need, and can then replay it."""
