"""The licences of the Python packages that a daemon may load, read from their metadata: what must not be among them.

    python licences.py SITE_PACKAGES

A daemon's process also has pyslurm, whose metadata says GPL-2.0-only. So each package must have a licence that goes
into a work under that: not Apache-2.0 alone, not LGPL-3. The exit code is 1 if one has not, or does not say which.
"""

import re
import sys
from importlib.metadata import Distribution, distributions

#: Those of today's packages, by their SPDX identifiers. A new one is added here after its text was read.
COMPATIBLE = {
    "0BSD",
    "Apache-2.0 WITH LLVM-exception",  # the exception has a clause for GPLv2
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "GPL-2.0-only",
    "GPL-2.0-or-later",
    "ISC",
    "LGPL-2.0-or-later",
    "LGPL-2.1-or-later",
    "MIT",
    "PSF-2.0",
    "Zlib",
}
#: Classifiers of packages without License-Expression.
CLASSIFIERS = {
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v2 or later (LGPLv2+)": "LGPL-2.0-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF-2.0",
}


def licence(package: Distribution) -> str:
    """The package's SPDX expression; what it says instead, or nothing, where that is not known."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return expression
    said = [
        each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier") or [] if each.startswith("License ::")
    ]
    known = [CLASSIFIERS.get(each, each) for each in said]
    return " AND ".join(known) or (metadata.get("License") or "").partition("\n")[0]


def is_compatible(expression: str) -> bool:
    """Whether the expression (AND, OR, WITH, parentheses) can be fulfilled by compatible licences alone."""
    words = re.findall(r"\(|\)|[^\s()]+(?:\s+WITH\s+[^\s()]+)?", expression)[::-1]

    def term() -> bool:
        word = words.pop() if words else ""
        if word != "(":
            return " ".join(word.split()) in COMPATIBLE
        inner = either()
        return bool(words) and words.pop() == ")" and inner

    def all_of() -> bool:
        fits = term()
        while words and words[-1] == "AND":
            words.pop()
            fits = term() and fits
        return fits

    def either() -> bool:
        fits = all_of()
        while words and words[-1] == "OR":
            words.pop()
            fits = all_of() or fits
        return fits

    return either() and not words  # a text that is no expression has words left, or names no licence


def main(folder: str) -> int:
    """Print each package with its licence; 1 if one is not compatible."""
    found = {each.metadata["Name"]: licence(each) for each in distributions(path=[folder])}
    wrong = [name for name, expression in found.items() if not is_compatible(expression)]
    for name in sorted(found, key=str.lower):
        print(f"{'wrong' if name in wrong else 'ok':6}{name}: {found[name] or 'says no licence'}")
    return 1 if wrong or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
