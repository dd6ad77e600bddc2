"""Beyond the DFRS paper: what of its advantage survives at a site, and what time limits make of yields below 1."""
