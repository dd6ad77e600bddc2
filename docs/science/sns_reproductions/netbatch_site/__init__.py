"""Max-Jobs, a week of a site with the features, weights and network of its nodes: what keeping to them costs."""
