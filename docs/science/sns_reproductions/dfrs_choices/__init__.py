"""DFRS, sections III and IV: the period of the periodic algorithms, and the square in the priority."""
