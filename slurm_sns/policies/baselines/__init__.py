"""The policies with which the papers compare their own: one module per policy."""
