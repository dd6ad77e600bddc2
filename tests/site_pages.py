"""The built documentation as a browser sees it: what each page loads, and where its links lead."""

import re
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes by which a browser loads something at once; `href` of these tags, too.
LOADING_ATTRIBUTES = ("src", "srcset", "poster", "data")
LOADING_TAGS = ("link",)


@dataclass
class HtmlPage(HTMLParser):
    """One page: the ids of its elements, where its links lead, and what it loads."""

    path: Path
    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name in ("id", "name"):
                self.ids.add(value)
            elif name in LOADING_ATTRIBUTES or (name == "href" and tag in LOADING_TAGS):
                self.loads.append(value)
            elif name == "href":
                self.links.append(value)


class Site:
    """All pages of a built site."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @cached_property
    def pages(self) -> dict[Path, HtmlPage]:
        return {path: HtmlPage(path) for path in sorted(self.root.rglob("*.html"))}

    def broken(self) -> list[str]:
        """The links and loaded files within the site that lead to nothing, as `page: link`."""
        return [
            f"{page.path.relative_to(self.root)}: {link}"
            for page in self.pages.values()
            for link in dict.fromkeys((*page.links, *page.loads))
            if not self._leads_somewhere(page, link)
        ]

    def _leads_somewhere(self, page: HtmlPage, link: str) -> bool:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            return True
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if not target.is_relative_to(self.root.resolve()) or not target.is_file():
            return False
        return not parts.fragment or target not in self.pages or unquote(parts.fragment) in self.pages[target].ids

    def loaded_from_elsewhere(self) -> list[str]:
        """What a browser would fetch from another host, as `file: address`."""
        pages = [(page.path, each) for page in self.pages.values() for each in page.loads]
        styles = [
            (path, each)
            for path in self.root.rglob("*.css")
            for each in re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)", path.read_text(encoding="utf-8"))
        ]
        return [f"{path.relative_to(self.root)}: {each}" for path, each in (*pages, *styles) if _is_elsewhere(each)]


def _is_elsewhere(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https")
