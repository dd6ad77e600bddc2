"""Where the pages of reproductions are; the modules read, run, judge and write one.

The pages are documentation that is made by running, and no part of slurm_sns: the folders of the package
sns_reproductions, which is installed beside it. A page is imported only when the user asks for it by its name.
"""

from importlib.util import find_spec
from pathlib import Path

PACKAGE = "sns_reproductions"
_FOUND = find_spec(PACKAGE)
#: The folders of the package, by the names of their pages: idcp_tables/ is idcp-tables. Empty if it is not installed.
FOLDERS = {
    file.parent.name.replace("_", "-"): file.parent
    for home in (_FOUND.submodule_search_locations or () if _FOUND else ())
    for file in sorted(Path(home).glob("*/claims.yaml"))
}
