"""From reconciled jobs and nodes to the snapshot that a policy plans on: nodes, alternatives, limits. Pure."""
