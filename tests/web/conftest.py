"""What the tests of the page share stands beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
