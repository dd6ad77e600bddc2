"""Reproduced figures and tables: one module each, and what they share: runs, claims, pages, drawings."""
