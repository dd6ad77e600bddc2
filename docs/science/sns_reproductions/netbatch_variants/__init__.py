"""Max-Jobs, variants: what decides on the claims; one thing that the paper does not print is changed at a time."""
