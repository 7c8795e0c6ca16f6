"""What the tests must know of our Markdown: pages, fenced blocks, code spans, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block; `follows_on` says that nothing stands between it and the one before."""

    language: str
    text: str
    line: int
    follows_on: bool


@dataclass(frozen=True)
class Page:
    """One page of the documents."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def prose(self) -> str:
        """The page without its fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self) -> Iterator[Block]:
        text, end = self.text, 0
        for found in _FENCE.finditer(text):
            gap = text[end : found.start()]
            line = text.count("\n", 0, found.start()) + 2
            yield Block(found[1], found[2], line, follows_on=bool(end) and not gap.strip())
            end = found.end()

    def code_spans(self) -> list[str]:
        return _SPAN.findall(self.prose)

    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    def anchors(self) -> set[str]:
        """The headings, as they are linked to."""
        plain = (
            re.sub(r"[^\w\s-]", "", heading.lower()) for heading in _HEADING.findall(self.prose)
        )
        return {heading.strip().replace(" ", "-") for heading in plain}


PAGES = [
    Page(path)
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md")))
]
