"""The sentences of a page in Markdown, and how many words they have.

Headings, tables and code blocks are no prose. A code span counts as one word. The end of a paragraph or of a list item
ends a sentence.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

_MARKDOWN = MarkdownIt("commonmark").enable("table").use(colon_fence_plugin).use(front_matter_plugin)
#: Directives whose content is prose.
_ADMONITION = re.compile(r"\{(?:note|tip|hint|important|warning|caution|danger|attention|error|admonition|seealso)\}")
#: After these a sentence goes on, whatever follows.
_ABBREVIATIONS = frozenset({"e.g.", "i.e.", "cf.", "vs.", "fig.", "figs.", "sec.", "no.", "p.", "pp.", "approx."})
#: After these it goes on if a small letter follows.
_SOMETIMES = frozenset({"etc.", "al.", "resp.", "incl.", "max.", "min.", "a.m.", "p.m."})
_CLOSERS = ")]\"'\u201d\u2019*_"
_OPENERS = "([\"'\u201c\u2018*_"
_END = re.compile(rf"[.!?][{re.escape(_CLOSERS)}]*(?=\s)")
#: Stands for a code span in the text, so that nothing in it ends a word or a sentence.
_CODE = "\ufffc"


def sentences(page: str) -> list[str]:
    """The sentences of the page's prose."""
    return [sentence for block in _blocks(_MARKDOWN.parse(page)) for sentence in _with_code(block)]


def words(sentence: str) -> int:
    """How many words the sentence has: a code span is one, a dash alone is none."""
    return sum(bool(re.search(rf"\w|{_CODE}", word)) for word in re.sub(r"`[^`]+`", _CODE, sentence).split())


def split(text: str) -> list[str]:
    """The text, in which code is replaced, at the ends of its sentences."""
    found, begin = [], 0
    for end in _END.finditer(text):
        if _goes_on(text[begin : end.end()].rsplit(maxsplit=1)[-1], text[end.end() :].lstrip()):
            continue
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    return [each for each in (*found, text[begin:].strip()) if each]


def _goes_on(last: str, rest: str) -> bool:
    """Whether the sentence goes on after this word, behind which this follows."""
    bare = last.lstrip(_OPENERS)
    is_small = rest.lstrip(_OPENERS)[:1].islower()
    word = bare.rstrip(_CLOSERS).lower()
    if word in _ABBREVIATIONS or not re.search(rf"[\w%]|{_CODE}", word):
        return True
    return is_small and (word in _SOMETIMES or word.endswith("...") or ")" in last)


def _with_code(block: tuple[str, list[str]]) -> Iterator[str]:
    text, spans = block
    left = iter(spans)
    for sentence in split(text):
        yield re.sub(_CODE, lambda _: f"`{next(left)}`", sentence)


def _blocks(tokens: list[Token]) -> Iterator[tuple[str, list[str]]]:
    """The text of each paragraph, with its code spans apart."""
    inside: list[str] = []
    for token in tokens:
        if token.type.endswith("_open"):
            inside.append(token.type)
        elif token.type.endswith("_close"):
            inside.pop()
        elif token.type == "inline" and inside[-1] == "paragraph_open":
            yield _text(token)
        elif token.type in ("colon_fence", "fence") and _ADMONITION.match(token.info.strip()):
            yield from _blocks(_MARKDOWN.parse(token.content))


def _text(inline: Token) -> tuple[str, list[str]]:
    text, spans = "", []
    for token in inline.children or ():
        if token.type == "code_inline":
            spans.append(token.content)
            text += _CODE
        elif token.type in ("softbreak", "hardbreak"):
            text += " "
        elif token.type == "text":
            text += token.content
    return text, spans
