"""Reproductions of the papers: a folder for each page with its claims (YAML), its run (Python) and its text (Jinja)."""
