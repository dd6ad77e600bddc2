"""Partitions whose jobs share cores: who gets how much of them, whose limit is extended, who is paused. Pure."""
