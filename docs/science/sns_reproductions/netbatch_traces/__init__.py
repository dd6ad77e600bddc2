"""Max-Jobs on logs of real sites: which findings of the paper carry over."""
