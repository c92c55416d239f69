#!/usr/bin/env python3
"""Runs the commands of tutorials as a reader would. `ci/tutorials.sh` makes the clone and calls this. Usage: tutorials.py PROGRAM CLONE PAGE.md...

In a page, in order:
  ```sh ...            is run by bash in the clone; any error fails
  ```console ...       the lines behind "$ " are run; what they print is compared by ci/gate/commands.sh
A remark above a block changes that:
  <!-- not run: REASON -->   the block is skipped
  <!-- needs root -->        skipped without root
  <!-- builds -->            skipped if a program was given, instead of built
  <!-- file: PATH -->        the block, of any language, is written to this file
  <!-- patch: PATH -->       the block, a diff, is applied to this file
Blocks of another language are read, not run.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

REMARK = re.compile(r"<!-- (not run|needs root|builds|file|patch)(?:: (.+))? -->$")


def blocks(text: str) -> list[tuple[int, str, str, str, str]]:
    """Line, language, text, remark and its value, of each block."""
    found, remark, begin, language = [], ("", ""), None, ""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if begin is None:
            told = REMARK.match(line)
            if told:
                remark = (told[1], told[2] or "")
            elif line.startswith("```"):
                begin, language = number + 1, line[3:].split(",")[0]
            elif line:
                remark = ("", "")
        elif line == "```":
            found.append((begin, language, "\n".join(lines[begin:number]) + "\n", *remark))
            begin, remark = None, ("", "")
    return found


def commands(text: str) -> str:
    """The commands of a console block, for bash; an exit code other than 0 is in a comment behind one."""
    kept, continues = [], False
    for line in text.split("\n"):
        if continues or line.startswith("$ "):
            line = line.removeprefix("$ ")
            code = re.search(r"\s+# exit code (\d+)$", line)
            if code:
                line = f"ended=0; {line[: code.start()]} || ended=$?; [[ $ended == {code[1]} ]]"
            kept.append(line)
            continues = line.endswith("\\")
    return "\n".join(kept) + "\n"


def run(page: Path, clone: Path, is_built: bool) -> int:
    failed = 0
    for line, language, text, remark, value in blocks(page.read_text()):
        where = f"{page}:{line}"
        if remark == "file":
            path = (clone / value).resolve()
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(row + "\n" for row in text.splitlines() if not (language == "rust" and row.startswith("# "))))
            continue
        if remark == "patch":
            script = f"patch --quiet {value} <<'END_OF_PATCH'\n{text}END_OF_PATCH\n"
        elif language == "sh":
            script = text
        elif language == "console":
            script = commands(text)
        else:
            continue
        skipped = {"not run": value, "needs root": "" if os.geteuid() == 0 else "needs root", "builds": "a program was given" if is_built else ""}
        if skipped.get(remark):
            print(f"{where}: SKIPPED: {skipped[remark]}")
            continue
        began = time.monotonic()
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script], cwd=clone, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
        )
        if ended.returncode:
            failed += 1
            print(f"{where}: FAILED with exit code {ended.returncode}\n{script}{ended.stdout}", file=sys.stderr)
            break  # the steps after it need this one
        print(f"{where}: {time.monotonic() - began:.1f} s")
    return failed


def main() -> None:
    program, clone, *pages = sys.argv[1:]
    folder = Path(program).resolve().parent if program else Path(clone, "target/release").resolve()
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    os.environ.pop("CARGO_TARGET_DIR", None)
    failed = sum(run(Path(page), Path(clone).resolve(), bool(program)) for page in pages)
    if failed:
        sys.exit(f"{failed} of {len(pages)} pages failed")


if __name__ == "__main__":
    main()
