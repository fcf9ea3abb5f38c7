"""Checks built pages: every link, picture and anchor is there, and no page asks another host for anything.

python docs/tools/links.py build/site [FILE.md ...]     also the relative links of the Markdown files
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# what a browser fetches by itself; an <a> is followed by a reader only
FETCHED = {
    ("link", "href"),
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("object", "data"),
}
NOT_FETCHED = {"canonical", "edit", "next", "prev"}


class Page(HTMLParser):
    """The anchors of one page, its links, and what it makes a browser fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {k: v or "" for k, v in attrs}
        self.anchors |= {given[k] for k in ("id", "name") if k in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        for name, value in given.items():
            if (tag, name) in FETCHED and given.get("rel") not in NOT_FETCHED:
                self.fetched.append(value)


def problems(site: Path) -> Iterator[str]:
    """One line for each link that leads nowhere and each request to another host."""
    pages = {p.resolve(): Page(p.read_text()) for p in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        if path.name == "404.html":  # its links are those of a site at the root of a host
            continue
        where = path.relative_to(site.resolve())
        for link in page.fetched:
            if urlsplit(link).netloc:
                yield f"{where}: asks another host for {link}"
        for link in (*page.links, *page.fetched):
            if not _leads_somewhere(path, link, pages):
                yield f"{where}: {link} leads nowhere"
    for path in sorted(site.rglob("*.svg")):
        if re.search(r"(?:href|src|url)\s*[=(]\s*[\"']?https?:", path.read_text()):
            yield f"{path.relative_to(site)}: asks another host"


def _leads_somewhere(page: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    target = target / "index.html" if target.is_dir() else target
    if target not in pages:
        return target.is_file()
    return not parts.fragment or unquote(parts.fragment) in pages[target].anchors


def broken(file: Path) -> Iterator[str]:
    """The relative links of a Markdown file that lead nowhere."""
    text = re.sub(r"^```.*?^```", "", file.read_text(), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        parts = urlsplit(link)
        if not parts.scheme and parts.path and not (file.parent / unquote(parts.path)).exists():
            yield f"{file}: {link} leads nowhere"


def main(site: str, *files: str) -> int:
    """Prints the problems; 1 if there are some."""
    found = [*problems(Path(site)), *(p for f in files for p in broken(Path(f)))]
    print("\n".join(found) or f"{sum(1 for _ in Path(site).rglob('*.html'))} pages: every link leads somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
