#!/usr/bin/env python3
"""Checks the English of this repository: house phrases, long sentences, long paragraphs.

    ci/gate/prose.py [PATH...]            counts findings per folder; fails above the limits in ci/gate/prose.toml
    ci/gate/prose.py --list [PATH...]     prints each finding as FILE:LINE
    ci/gate/prose.py --files [PATH...]    prints one row per file: words, sentences, median and p90 length, findings
    ci/gate/prose.py --sample N [PATH...] prints N random findings, to measure precision (--seed S)
    UPDATE=1 ci/gate/prose.py             lowers the limits to the present counts; it never raises one

A finding is one of three kinds:

    phrase       a house phrase of the glossary in docs/contributing/language.md
    long         a sentence of more than 30 words
    paragraph    a paragraph of more than 120 words

The checker reads prose only:

    Markdown                     paragraphs, list items, table cells, headings
    Rust                         doc comments, other comments, messages
    C, C++, shell, Python        comments; docstrings of Python
    scenarios and other TOML     comments, `question`, `look_at`, `title`, `claim`, `note`, `because`

It skips code, tests, and docs/spec. A line that contains the MARKER below has no findings; the repository may have 20 such lines.

Each row of the glossary is a rule. Its first column names a pattern in PATTERNS below. If there is no pattern of that name, the phrases
in backquotes of the second column match literally. The checker first tests the glossary. It must find each phrase by the rule of its
row, and nothing in the replacement in the third column.

Precision: 237 of 240 random findings were judged to be real, in November 2026: `--sample 100` with the seeds 7 and 11, and 40 findings
of rules that were added later. The rules of two of the other three were then narrowed. The checker finds no omissions, so a text
without findings can still be hard to read.
"""

import argparse
import collections
import os
import random
import re
import statistics
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOSSARY = ROOT / "docs/contributing/language.md"
LIMITS = ROOT / "ci/gate/prose.toml"
LONG, PARAGRAPH, EXCEPTIONS = 30, 120, 20
MARKER = "prose: " + "ok"
KINDS = ("phrase", "long", "paragraph")
# Folders that hold no prose of this repository: specifications, tests, fixtures, and the recordings themselves.
SKIPPED = re.compile(r"^docs/spec/|(^|/)(tests|benches|fixtures|target|node_modules)/|^\.|^ground-truth/.*\.(toml|txt)$")
SUFFIXES = (".md", ".rs", ".toml", ".h", ".c", ".cpp", ".hpp", ".sh", ".py", ".pyi")

# ---- Rules --------------------------------------------------------------------------------------------------------------------------

NUM = r"~?[+-]?\d[\d,.]*(?: ?(?:%|k|M|s|ms|us|ns|[KMGT]i?B(?:/s)?))?"
BE, AUX = r"(?:is|are|was|were)", r"(?:is|are|was|were|has|have|had|can|can't|may|must|will|would)"
# Up to the end of the clause, without a further one.
FREE = r"(?:(?!\b(?:where|which|that|who|when|if|and|than)\b)[^,;:.?(])*?"
# name -> words of which a match has at least one (which saves most searches), pattern. `^` is the start of a sentence. Patterns ignore
# case, except (?-i:...).
PATTERNS = {
    # A clause as a subject.
    "who-subject": ("who whoever", r"^who(?:ever)? (?!is\b.{0,40}\?)[^?]*$"),
    "what-subject": ("what", rf"^what (?!\w+s (?:have|are|were|can|may|do)\b){FREE}\b(?:\w+s|{AUX}|comes?|came|went){FREE} (?:{AUX}|goes|stays|takes|comes|costs|needs|begins|ends|waits|counts)(?: [^?]*)?$"),
    "where-if": ("where", r"^where (?:(?!\bto\b)[^,:;?.]){8,110}, (?!and\b|in what|or\b|with\b|as\b|for\b|from\b)[^?]{12,}$"),
    "of-first": ("of", r"^(?-i:Of) (?!course\b)[^?]{20,}$"),
    # Dummy people.
    "nobody": ("nobody anybody somebody everybody", r"\b(?:nobody|anybody|somebody|everybody)(?:'s)?\b"),
    "whoever": ("whoever", r"\bwhoever\b"),
    "whom": ("whom", r"\bwhom\b"),
    "than-who": ("who", r"\b(?:than|for|from) who (?!and|or)\b"),
    "he": ("he him his himself", r"(?-i:\b(?:he|him|his|himself)\b)"),
    "ours": ("ours", r"(?-i:\b[oO]urs\b)"),
    # Numbers.
    "for-versus": ("for", rf"\b(?!20[012]\d for){NUM}(?: [a-z][\w/ ]{{1,16}})? for {NUM}(?=[.,;:)](?!\d)|$| and\b)(?! ?(?:s|ms|minutes|hours|seconds|years)\b)"),
    "so-many": ("so", r"\b(?:with|after|every|by|run|once|to|takes?|each|also) so (?:many|much|long)\b(?! (?:that|as)\b)|\bcounters so often\b|\bso (?:many|much) (?:accesses|percent|seeds|pages|do)\b(?!.{0,60}\b(?:that|as)\b)"),
    "in-all": ("all", r"(?<=[\w%]),? in all(?=[,.;:)]|$| and\b)"),
    "a-for-per": ("us ns ms bytes time calls victims seeds", r"\b(?:us|ns|ms|bytes|CPU time|calls|victims|seeds) an? (?:page|access|read|miss|hit|call|cell|node|row)\b(?! (?:is|was|takes|needs|has|that|at)\b)"),
    "a-row-a-cell": ("a an", r"\b(?:a|one) (?:row|line|file|column|chart|bar|word|trick|shard|plan) an? (?:cell|trace|file|mechanism|command|rule|page|CPU|row|switch|access|task|object|size)\b"),
    "a-borrow-less": ("less", r"\ba [a-z-]+ less(?=[.,;:)]|$| and\b)"),
    "middle-one": ("middle", r"(?<!in )\bthe middle one\b"),
    "stands-for": ("stands", r"\bstands for \d"),
    "least-most": ("least smallest", r"\b(?:least|smallest) (?:and|to|or) (?:most|largest)\b|\bthe least (?:that|with)\b"),
    # Verbs that are not literal.
    "told": ("told", rf"\b(?:{BE}|be|been|not|and|or|nor|also) told\b(?! apart)|\btold (?:of|by|with|in|as|when|about)\b"),
    "tells": ("tell tells", r"\btells? (?:of|what|which|how|when|whether|why|if|on)\b|\b(?:that|it|events?|trace|engine|record|tracepoints?|sources?) tells?\b(?! apart)"),
    "says": ("said say says", rf"\b{BE} said\b|\b(?:and|which) says? so\b|\bsaid (?:with|below|otherwise)\b|\bsays? (?:nothing|no more|of)\b"),
    "hears-of": ("hear hears heard hearing", r"\b(?:hears?|heard|hearing) of\b"),
    "wants": ("want wants", r"\b(?:trace|disk|page|plan|program|transactions?|cores|LaTeX|database|workload|device|reclaim|file|\w+size\d*) wants?\b"),
    "taken-for": ("taken take takes took", r"\b(?:taken|takes?|took) (?:it |them )?for (?:what|the wrong|hot|used|one that)\b|\bwas taken for\b"),
    "takes-accept": ("takes taken", r"\bit takes a recorded\b|\bis taken,? and\b|\btakes (?:another|other|several) polic|\btakes yours\b"),
    "stands": ("stand stands stood", r"\bstands? (?:beside|in one table|among|below|there as|at kswapd)\b|\bstood (?:beside|below)\b"),
    "go-by": ("goes went go going", r"\b(?:goes|went|go|going) by (?:the (?!name)|a |an |its|their|what|old|numbers?|statistics|sizes?|it\b)"),
    "go-well": ("well", r"\b(?:goes|went|go|gone) well\b"),
    "comes-by": ("by", r"\b(?:comes?|came|passed|passes) by (?:a |the |other |groups?|zones?)"),
    "mend": ("mend mends mended mending", r"\bmend(?:s|ed|ing)?\b"),
    "tell-apart": ("apart", r"\bt(?:ell|ells|old|elling) (?:[\w']+ ){0,4}apart\b"),
    # But not the command of this name: its files, its chapter, and its messages.
    "play": ("play plays played playing", r"(?<![/\w])play(?:s|ed|ing)?\b(?! an? \w* ?(?:role|part)\b)(?![./]\w|: )(?!(?<=\Aplay)\Z)"),
    "dear": ("dear dearer dearest", r"\bdear(?:er|est)?\b"),
    "hangs-on": ("hang hangs", r"\bhangs? on(?! to)\b"),
    "fall-short": ("short", r"\b(?:fall|falls|fell) short\b"),
    "earns": ("earn earns", r"\bearns? (?:its|it|their|a)\b"),
    "brings-along": ("along", r"\bbrings? along\b"),
    "what-comes": ("comes come came becomes", r"\bwhat (?:comes|came|has come|is to come) (?:of|out)\b|\bcomes? of it\b|\bwhat becomes of\b"),
    "is-to-go": ("to", rf"\b{BE} to (?:go|stay|find|hold|fall|sleep|begin|come)\b"),
    # Nouns and the rest.
    "is-no": ("no", rf"(?<!there )\b{BE} no (?!longer|more\b|less|different|need|way|reason|such|doubt|better|worse|\w+er than|one\b|\w+, no|guarantee|matter|effect|use\b)[a-z]{{3,}}"),
    "be-had": ("had", r"\b(?:can't|cannot|can|could|may|might|is|are|was|to) (?:not )?be had\b(?! (?:to|been|a|the|no|its|their)\b)"),
    "is-no-good": ("good do", rf"\b{BE} no good\b|\bany \w+ will do\b|\bthat (?:would|will) do(?=[.,;])"),
    "as-it-is": ("as", rf"\b(?:{BE}|be|stays?|left|taken?|goes on|batch|as) as (?:it|they) {BE}\b(?! (?:in|on|for|that|by)\b)|\bas (?:it|they) {BE}[.,;:)]"),
    "that-there-is": ("there", rf"\b(?:memory|all|nodes|object|pages|runs|files?|those|many|what) that there {BE}\b(?! (?:a|no|any)\b)"),
    "not-there": ("there", rf"\b{BE} (?:not )?there(?: (?:already|yet|any more))?[,.;:]|\bnot there:"),
    "room": ("room rooms", r"(?-i:(?<!-)\brooms?\b)(?! temperature| to |-)(?<!make room)(?<!makes room)(?<!made room)(?<!making room)"),
    "marks": ("mark marks", r"\b(?:low|high|min|minimum|two) marks?\b(?! (?:of|on|so)\b)|\b(?:between|to|near) (?:the |its |their )?marks\b"),
    "two-lists": ("lists", r"\b(?:with|under|spares?|has|have|of) two lists\b|(?:^|; |, )two lists\b(?! (?:in order|of|that|with)\b)"),
    "generations": ("generations", r"\b(?:with|under|spares) (?:the )?generations\b(?! of)|(?:^|[;,] )generations (?:as|1|one|from|to)\b"),
    "looked-at": ("looked look looks looking", r"\bpages? (?:that (?:is|are|was|were) )?looked at\b|\blook(?:s|ed|ing)? at (?:no|\d[\d,]*|fewer|more|(?:half )?as many) pages?\b|\b(?:is|are|was|were|been|be) looked at\b"),
    "letter": ("letter letters", r"(?<!cover )(?<!-case )(?<!capital )\b(?:the|its|every|each|these|fast|of) letters?\b(?! (?:of|case|or digit|first|and|for|mean)\b)"),
    "pictures": ("picture pictures", r"\bpictures?\b"),
    "whole": ("whole", rf"\b(?:{BE}|when|be|comes|not) whole\b(?! [a-z]+s\b)"),
    "drawn": ("drawn draw draws", r"\bdrawn (?:orders?|at random)\b|\b(?:orders?|pages) that (?:is|are) drawn\b|\bgenerators? draws?\b|\bdrawn by a\b"),
    "in-hands": ("hands hand", r"\bin (?:\w+ ){0,2}hands\b|\bin hand\b"),
    "ones-own": ("own", r"\b(?:of )?(?:one's|his) own\b|\bpolic(?:y|ies) of (?:your|my) own\b"),
    "others-code": ("others", r"\b(?:caches?|libraries) of others\b|\bothers' caches\b"),
    "what-is-what": ("what", r"\bwhat is (?:what|where)\b"),
    "up-to-that": ("that", r"\bup to that(?=[,. ])|\bin that,"),
    "unlike": ("unlike", r"\b(?:of|with) unlike\b"),
    "as-x-has-it": ("it", r"\bas \w+ (?:have|has) it(?=[.,;)])"),
    "at-once": ("once", r"(?<!all )\bat once\b"),
    "put-aside": ("aside", r"\bput aside\b|\bsets? aside(?! for)\b"),
    "of-then": ("then day before", r"\bof (?:then|the day)\b|\b(?:of|from) before(?=[.,;:)]|$)"),
    "one-reading": ("reading", r"\b(?:one|single) reading\b"),
}


@dataclass
class Rule:
    """A row of the glossary."""

    name: str
    words: frozenset[str]
    pattern: re.Pattern[str]
    instead: str


def rules() -> list[Rule]:
    """Reads the glossary, and checks each of its rows against its own examples."""
    found, wrong, examples = [], [], []
    for number, line in enumerate(GLOSSARY.read_text(encoding="utf-8").split("\n"), 1):
        row = re.fullmatch(r"\| `([\w-]+)` \| (.+?) \| (.+?) \|", line)
        if not row:
            continue
        name, phrases, instead = row[1], re.findall(r"`([^`]+)`", row[2]), row[3]
        words, pattern = PATTERNS.get(name, (None, None))
        if pattern is None:
            pattern = r"(?<!\w)(?:" + "|".join(map(re.escape, phrases)) + r")(?!\w)"
            words = " ".join(re.findall(r"[a-z]+", phrase.lower())[-1] for phrase in phrases)
        rule = Rule(name, frozenset(words.split()), re.compile(pattern, re.I), instead)
        if not phrases:
            wrong.append(f"{name}: the row has no phrase in backquotes")
        if any(other.name == name for other in found):
            wrong.append(f"{name}: the glossary has two rows of this name")
        found.append(rule)
        examples.append((number, rule, phrases))
    wrong += [f"{name}: no row of the glossary has this name" for name in PATTERNS if not any(rule.name == name for rule in found)]
    for number, rule, phrases in examples:
        for phrase in phrases:
            if not any(hit is rule for hit, _ in phrases_in(phrase, found)):
                wrong.append(f"line {number}: the rule `{rule.name}` does not find `{phrase}`")
        for hit, match in phrases_in(clean(rule.instead), found):
            wrong.append(f"line {number}: the replacement has `{match[0]}`, a finding of `{hit.name}`")
    if wrong:
        sys.exit("\n".join(f"{GLOSSARY.relative_to(ROOT)}: {text}" for text in wrong))
    return found


def phrases_in(sentence: str, all_rules: list[Rule]):
    """Yields each house phrase of a sentence: its rule and its match."""
    words = set(re.findall(r"[a-z]+", sentence.lower()))
    for rule in all_rules:
        if not rule.words.isdisjoint(words):
            for match in rule.pattern.finditer(sentence):
                yield rule, match


# ---- Text -> sentences ----------------------------------------------------------------------------------------------------------------

ABBREVIATION = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|approx|Fig|No|resp|Dr|Mr|St|et al)\.(?=\s)")
# A sentence begins with a capital, a digit or code; after a word and a period with anything, such as the name of a counter.
SPLIT = re.compile(r"""(?<=[.!?])["')\]*_]*\s+(?=["'(\[*_`]*[A-Z0-9`\u2022\u2190-\u22ff])|(?<=\w\w[.!?])\s+(?=[a-z])""")
WORD = re.compile(r"[A-Za-z0-9][\w'’./%+-]*|\u2022")


def clean(text: str) -> str:
    """Prose without markup: code, a link's target, and a placeholder of a format string are one word each."""
    text = re.sub(r"!\[([^\]]*)\]\([^)]*\)", r"\1.", text)
    text = re.sub(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])?", r"\1", text)
    text = re.sub(r"``?[^`]+``?`?", "\u2022", text)
    text = re.sub(r"\*\*|__|<[^>]{1,80}>|\{[^}]*\}", lambda m: "\u2022" if m[0][0] == "{" else "", text)
    return re.sub(r"\s+", " ", re.sub(r"https?://\S+", "\u2022", text)).strip()


def sentences(text: str) -> list[str]:
    """Splits at ends of sentences. A part of one word, such as `OK.`, is none."""
    text = ABBREVIATION.sub(lambda m: m[1].replace(".", "\u2024") + "\u2024", text)
    return [sentence for sentence in SPLIT.split(text) if len(WORD.findall(sentence)) > 1]


# ---- Files -> blocks of prose: (line, shape, text), where a shape is para, cell or head -------------------------------------------------


def markdown(lines, first=1):
    block, start, fence, comment = [], 0, None, False

    def flush():
        if block:
            yield start, "para", " ".join(block)
        block.clear()

    for number, line in enumerate(lines, first):
        bare = line.strip()
        if fence:
            fence = None if bare.startswith(fence) else fence
        elif comment or bare.startswith("<!--"):
            comment = "-->" not in bare
            yield from flush()
        elif bare.startswith(("```", "~~~")):
            fence = bare[:3]
            yield from flush()
        elif not bare:
            yield from flush()
        elif bare.startswith("|"):
            yield from flush()
            for cell in re.split(r"(?<!\\)\|", bare.strip("|")):
                if len(cell.split()) > 2:
                    yield number, "cell", cell
        elif re.match(r"#+ ", bare):
            yield from flush()
            yield number, "head", bare.lstrip("# ")
        elif not block and line.startswith("    ") and not re.match(r"\s*([-*+]|\d+\.)\s", line):
            pass  # A block of code.
        else:
            item = re.match(r"([-*+]|\d+[.)])\s+(.*)", bare.lstrip("> "))
            if item:
                yield from flush()
                start = number
                block.append(item[2])
            else:
                start = start if block else number
                block.append(bare.lstrip("> "))
    yield from flush()


def comments(lines, opening: str):
    """Comments of whole lines. A line that is indented within its comment is code or a diagram."""
    run, start = [], 0
    for number, line in enumerate([*lines, ""], 1):
        match = re.match(opening, line)
        if match:
            start = start if run else number
            run.append("" if match[1].startswith("  ") else match[1])
        elif run:
            yield from markdown(run, start)
            run = []


def rust(text: str):
    cut = re.search(r"^\s*#\[cfg\((?:any\()?test\b[^\n]*\n\s*mod \w+ \{", text, re.M)
    lines = (text[: cut.start()] if cut else text).split("\n")
    run, kind, start = [], None, 0
    for number, line in enumerate([*lines, ""], 1):
        match = re.match(r"\s*(//[/!]?)(?!/)\s?(.*)", line)
        now = match and len(match[1])
        if now != kind:
            yield from markdown(run, start)
            run, kind, start = [], now, number
        if match:
            run.append(match[2])
    code = "\n".join("" if re.match(r"\s*//", line) else line for line in lines)
    for match in re.finditer(r'(?<![\w\'\\])(r?)"((?:\\.|[^"\\])*)"', code, re.S):
        before = code[max(0, match.start() - 60) : match.start()].rsplit("\n", 1)[-1]
        if match[1] or re.search(r"#\[|assert|expect\(|panic!|unreachable!|#$", before):
            continue  # Raw strings hold other languages.
        message = re.sub(r"\\\n\s*", "", match[2]).replace('\\"', '"')
        at = code.count("\n", 0, match.start()) + 1
        for part in re.split(r"\\n|\n", message):
            # A line of an example: a command, or a comment above one.
            if len(re.findall(r"[A-Za-z]{2,}", part)) >= 4 and not re.match(r"\s*(?:\$ |# |pageout )|Examples:|    ", part):
                yield at, "para", part


def c_family(text: str):
    for match in re.finditer(r"/\*(.*?)\*/|((?:^[ \t]*//[^\n]*\n)+)", text, re.S | re.M):
        lines = [re.sub(r"^\s*(?:\*|//+)? ?", "", line) for line in (match[1] or match[2]).split("\n")]
        lines = ["" if line.startswith("  ") else line for line in lines]  # A table or code.
        yield from markdown(lines, text.count("\n", 0, match.start()) + 1)


def python(text: str):
    yield from comments(text.split("\n"), r"\s*# ?(?!!)(.*)")
    for match in re.finditer(r'^[ \t]*"""(.*?)"""', text, re.S | re.M):
        yield from markdown(["" if re.match(r"    ", line) else line for line in match[1].split("\n")], text.count("\n", 0, match.start()) + 1)


def scenario(text: str):
    yield from comments(text.split("\n"), r"# ?(.*)")
    for match in re.finditer(r'^(?:question|look_at|title|claim|note|because) = (?:"""(.*?)"""|"(.*?)"$)', text, re.S | re.M):
        yield text.count("\n", 0, match.start()) + 1, "para", re.sub(r"\\\n\s*", "", match[1] or match[2])


def blocks(path: str, text: str):
    suffix = os.path.splitext(path)[1]
    if suffix == ".md":
        return markdown(text.split("\n"))
    if suffix == ".rs":
        return rust(text)
    if suffix == ".toml":
        return scenario(text)
    if suffix in (".py", ".pyi"):
        return python(text)
    if suffix == ".sh":
        return comments(text.split("\n"), r"\s*# ?(?!!)(.*)")
    return c_family(text)


# ---- Findings ---------------------------------------------------------------------------------------------------------------------------


@dataclass
class Finding:
    path: str
    line: int
    kind: str
    what: str
    instead: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.what}  ->  {self.instead}"


class Tally:
    """What is counted of a file."""

    def __init__(self):
        self.lengths, self.words, self.findings = [], 0, collections.Counter()

    def row(self, name: str) -> str:
        lengths = sorted(self.lengths) or [0]
        over = 100 * sum(length > LONG for length in lengths) / len(lengths)
        return (
            f"{name:<60} {self.words:>6} {len(self.lengths):>6} {statistics.median(lengths):>6g} {lengths[int(len(lengths) * 0.9)]:>4} "
            f"{over:>5.1f} {self.findings['phrase']:>7} {1000 * self.findings['phrase'] / max(1, self.words):>6.1f}"
        )


CLAUSES = ("what-subject", "of-first", "where-if", "who-subject")


def check(path: str, text: str, all_rules: list[Rule], tally: Tally):
    """Yields the findings of a file."""
    marked = {number for number, line in enumerate(text.split("\n"), 1) if MARKER in line}
    for line, shape, block in blocks(path, text):
        if line in marked:
            continue
        prose = clean(block)
        parts = sentences(prose)
        for sentence in parts or [prose]:
            size = len(WORD.findall(sentence))
            tally.words += size
            if parts and (shape == "para" or size >= 12):
                tally.lengths.append(size)
                if size > LONG:
                    yield Finding(path, line, "long", f"{size} words: {sentence}", f"at most {LONG}: split the sentence")
            for rule, match in phrases_in(sentence, all_rules):
                if shape == "para" or rule.name not in CLAUSES:
                    around = sentence[max(0, match.start() - 60) : match.end() + 40]
                    yield Finding(path, line, "phrase", f"{rule.name}: `{match[0][:40]}` in: {around}", rule.instead)
        size = len(WORD.findall(prose))
        if size > PARAGRAPH:
            yield Finding(path, line, "paragraph", f"{size} words: {prose[:80]}", f"at most {PARAGRAPH}: split the paragraph, or write a list")


def files(paths: list[str]) -> list[str]:
    """Files of the repository with prose in them, new ones that are not committed included."""
    shown = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = sorted(set(filter(None, shown.stdout.split("\0"))))
    return [name for name in names if name.endswith(SUFFIXES) and not SKIPPED.search(name) and (ROOT / name).is_file()]


# ---- Limits -----------------------------------------------------------------------------------------------------------------------------


def folder_of(path: str, limits: dict) -> str:
    """The folder with limits that holds the file: the innermost one. `.` is the root of the repository."""
    inside = [folder for folder in limits if folder != "." and path.startswith(folder + "/")]
    return max(inside, key=len, default=".")


def judge(findings: list[Finding], limits: dict) -> int:
    """Prints one row per folder; returns how many counts are above their limits."""
    counts = {folder: collections.Counter() for folder in limits}
    for finding in findings:
        counts[folder_of(finding.path, limits)][finding.kind] += 1
    above = 0
    print(f"{'folder':<24} " + " ".join(f"{kind:>16}" for kind in KINDS))
    for folder, limit in limits.items():
        cells = []
        for kind in KINDS:
            over = counts[folder][kind] > limit[kind]
            above += over
            cells.append(f"{counts[folder][kind]} of {limit[kind]}{' ABOVE' if over else ''}")
        print(f"{folder:<24} " + " ".join(f"{cell:>16}" for cell in cells))
    if os.environ.get("UPDATE") == "1":
        text = LIMITS.read_text(encoding="utf-8")
        head = text[: text.index("[")]
        for folder, limit in limits.items():
            head += f'["{folder}"]\n' + "".join(f"{kind} = {min(limit[kind], counts[folder][kind])}\n" for kind in KINDS) + "\n"
        LIMITS.write_text(head.rstrip("\n") + "\n", encoding="utf-8")
        print(f"{LIMITS.relative_to(ROOT)}: limits lowered where fewer findings are left")
    return above


def main() -> int:
    options = argparse.ArgumentParser(usage=__doc__)
    options.add_argument("--list", action="store_true")
    options.add_argument("--files", action="store_true")
    options.add_argument("--sample", type=int)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("paths", nargs="*")
    asked = options.parse_args()
    for path in asked.paths:
        if not os.path.exists(path):
            return f"{path}: no such file or folder"
    paths = [os.path.relpath(os.path.abspath(path), ROOT) for path in asked.paths]

    all_rules = rules()
    tallies, findings, exceptions = {}, [], []
    for path in files(paths or ["."]):
        text = (ROOT / path).read_text(encoding="utf-8", errors="replace")
        exceptions += [f"{path}:{number}" for number, line in enumerate(text.split("\n"), 1) if MARKER in line]
        tally = tallies[path] = Tally()
        for finding in check(path, text, all_rules, tally):
            tally.findings[finding.kind] += 1
            findings.append(finding)

    if asked.files:
        print(f"{'file':<60} {'words':>6} {'sent.':>6} {'median':>6} {'p90':>4} {'>30 %':>5} {'phrases':>7} {'/1000':>6}")
        for path, tally in sorted(tallies.items(), key=lambda pair: -sum(pair[1].findings.values())):
            print(tally.row(path))
    shown = findings if asked.list else []
    if asked.sample:
        shown = random.Random(asked.seed).sample(findings, min(asked.sample, len(findings)))
    for finding in shown:
        print(finding)
    if asked.list or asked.files or asked.sample:
        print(f"{len(findings)} findings")
        return 0

    if asked.paths:
        print(f"{len(findings)} findings; the limits are checked without a PATH only")
        return 0
    above = judge(findings, tomllib.loads(LIMITS.read_text(encoding="utf-8")))
    print(f"{len(findings)} findings, {len(exceptions)} of {EXCEPTIONS} lines with `{MARKER}`")
    if len(exceptions) > EXCEPTIONS:
        print("too many exceptions:", *exceptions, sep="\n", file=sys.stderr)
    if above:
        print(
            f"counts above their limits: {above}. `git diff --name-only | xargs ci/gate/prose.py --list` shows the findings of files that you "
            f"changed;\n{GLOSSARY.relative_to(ROOT)} has the rules.",
            file=sys.stderr,
        )
    return int(above > 0 or len(exceptions) > EXCEPTIONS)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:
        sys.stderr.close()
