"""Spread-n-Share: figure 20, jobs of Trinity on large clusters."""
