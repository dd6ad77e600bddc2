"""Where the checkout has what the pages are made from."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: The pages of measured results, a directory each.
RESULTS = ROOT / "docs" / "science" / "results"
CONFIGURATION = ROOT / "conf" / "sns.yaml"
