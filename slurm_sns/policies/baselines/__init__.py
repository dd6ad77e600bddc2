"""What the papers compare themselves with: one module per policy."""
