"""Reports: pages of text, tables and charts, shown in a terminal or as one HTML file."""
