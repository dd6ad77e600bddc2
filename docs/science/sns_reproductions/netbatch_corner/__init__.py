"""Max-Jobs, sections 3.1 and 6: the corner of the machine at which Mix-Fit's angle is taken."""
