"""Reproductions of papers: one module for each page, and the modules they share for runs, claims, pages and figures."""
