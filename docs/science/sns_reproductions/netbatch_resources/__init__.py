"""Max-Jobs with more than two resources: "in principle this can be extended" (section 7)."""
