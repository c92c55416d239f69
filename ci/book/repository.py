#!/usr/bin/env python3
"""A preprocessor of mdBook: makes links to files outside of the book's folder work in the built book.

A page links to files of the repository by relative paths, so that the links work on a forge. In the built book such a link opens a copy of the
file below `repository/`. This program copies each linked file into target/book-files, which `ci/book.sh` moves there, rewrites the link, and does two more things:
- a link to a page README.md, or to its folder, opens `index.html`, as mdBook names it;
- a link from one of the two books to the other opens the page there: the second book is built into the folder `spec` of the first.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
SPEC = DOCS / "spec"
BOOK = ROOT / "target/book"
COPIES = ROOT / "target/book-files"
# Copies of these get names by which a browser shows text, and which mdBook does not take for those of pages.
TEXT = {".md", ".rs", ".toml", ".c", ".h", ".py", ".sh", ".mjs", ".ipynb"}
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
FENCE = re.compile(r"^(```|~~~)")


def is_page(file: Path) -> bool:
    """Whether one of the two books has the file as a page."""
    if file.suffix != ".md" or DOCS not in file.parents:
        return False
    folder = SPEC if SPEC in file.parents else DOCS
    name = os.path.relpath(file, folder)
    return f"]({name})" in (folder / "SUMMARY.md").read_text()


def copied(file: Path) -> Path:
    """The path of a file's copy in the folder of copies."""
    path = file.relative_to(ROOT)
    return path.with_name(f"{path.stem}_{file.suffix[1:]}.txt") if file.suffix in TEXT else path


def built(file: Path) -> Path:
    """Where the built book has a page or a file."""
    if is_page(file):
        return BOOK / file.relative_to(DOCS).parent / ("index.html" if file.name == "README.md" else f"{file.stem}.html")
    return BOOK / "repository" / copied(file)


def link(match: re.Match, folder: Path) -> str:
    begin, path, anchor, end = match.groups()
    if re.match(r"[a-z]+:", path):
        return match[0]
    file = (folder / path).resolve()
    if file.is_dir():
        file = next((file / name for name in ("README.md",) if (file / name).is_file()), file)
    if not file.exists() or not file.is_relative_to(ROOT):
        return match[0]  # the check of links reports it
    is_picture = file.suffix in (".png", ".svg") and DOCS in file.parents
    if is_picture or not file.is_file():
        return match[0]
    place = built(file)
    if not is_page(file):
        copy = COPIES / copied(file)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        anchor = None  # a copy is shown as text
    here = BOOK / folder.relative_to(DOCS)
    return f"{begin}{os.path.relpath(place, here)}{anchor or ''}{end}"


def page(chapter: dict, source: Path) -> None:
    folder = (source / chapter["source_path"]).parent
    lines, is_code = [], False
    for line in chapter["content"].split("\n"):
        if FENCE.match(line.lstrip()):
            is_code = not is_code
        lines.append(line if is_code else LINK.sub(lambda match: link(match, folder), line))
    chapter["content"] = "\n".join(lines)


def walk(items: list, source: Path) -> None:
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter.get("source_path"):
            page(chapter, source)
        if chapter:
            walk(chapter["sub_items"], source)


def main() -> None:
    if sys.argv[1:2] == ["supports"]:
        sys.exit(0 if sys.argv[2] == "html" else 1)
    context, book = json.load(sys.stdin)
    source = Path(context["root"], context["config"]["book"]["src"]).resolve()
    walk(book.get("items", book.get("sections", [])), source)
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
