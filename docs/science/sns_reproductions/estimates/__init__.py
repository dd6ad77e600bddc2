"""Estimated starts on logs of real sites: how often the truth lies in the range, and how far off its middle is."""
