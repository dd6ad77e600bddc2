"""Max-Jobs beside EASY and conservative backfilling, on logs of real sites and on the generated pools."""
