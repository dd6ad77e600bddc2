"""Policies that compose the methods of several papers."""
