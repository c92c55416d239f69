#!/usr/bin/env python3
"""Checks a built book: each link of its pages leads to a file, and to an anchor of that page. Usage: links.py FOLDER"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[int, str]] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            if value and ((name == "href" and tag in ("a", "link")) or (name == "src" and tag in ("img", "script"))):
                self.links.append((self.getpos()[0], value))


@cache
def page(file: Path) -> Page:
    parsed = Page()
    parsed.feed(file.read_text())
    return parsed


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    pages = [file for file in sorted(folder.rglob("*.html")) if "repository" not in file.relative_to(folder).parts and file.name != "404.html"]
    checked, faults = 0, []
    for file in pages:
        for line, link in page(file).links:
            place = urlsplit(link)
            if place.scheme or place.netloc:
                continue
            checked += 1
            target = (file.parent / unquote(place.path)).resolve() if place.path else file
            if target.is_dir():
                target = target / "index.html"
            where = f"{file.relative_to(folder)}:{line}: {link}"
            if not target.is_file() or not target.is_relative_to(folder):
                faults.append(f"{where} leads nowhere")
            elif place.fragment and target.suffix == ".html" and unquote(place.fragment) not in page(target).anchors:
                faults.append(f"{where}: the page has no such anchor")
    print(*faults, sep="\n", file=sys.stderr)
    print(f"{len(pages)} pages, {checked} links, {len(faults)} broken")
    if faults or len(pages) < 30:
        sys.exit(1)


if __name__ == "__main__":
    main()
