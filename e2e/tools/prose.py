#!/usr/bin/env python3
"""Finds what is not plain English in pages, CRD descriptions, help texts, reasons, samples and header comments.

    prose.py            prints the findings of each group of files that has more than its limit allows
    prose.py --count    prints the number of findings of each file and rule, and the sums
    prose.py FILE...    prints all findings of these files; limits do not apply

    L1  a sentence has a subject: it does not begin with a relative clause ("Who is lost ...", "What comes ...")
    L2  a sentence has at most 25 words and one colon or semicolon, a paragraph 80 words, a table cell 30 words
    L3  words that are not used, because a plain one exists ("anew", "somebody", "is told")
    L4  words of our own for which the field has one ("put back", "wait list")
    L6  pages for users name no test
    L8  a help text begins with a noun or a verb

prose_limits.txt holds the limits and the exceptions, each with its reason. A file without a limit has the limit 0.
"""

import collections
import fnmatch
import glob
import pathlib
import re
import sys

LIMITS = "e2e/tools/prose_limits.txt"
MAX_EXCEPTIONS, MAX_SENTENCE, MAX_PARAGRAPH, MAX_CELL = 10, 25, 80, 30
PAGES = ("*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md")
USER_PAGES = re.compile(r"(README|SECURITY|examples/[^.]*|docs/(?!contributing/|explanation/architecture)[^.]*)\.md")
SOURCES = ("bench", "certs", "common", "controller", "graph", "plugin", "standalone", "webhook")

HEADLESS = re.compile(r"^(who|whoever|whom|what|whatever|which|how|of (what|those|these|whom)|so (long|often|many|much)"
                      r"|such a one|one (that|who)|those (that|who))\b|^(when|where)\b[^,]*$|[;:] (who|whoever|what) ", re.I)
# A description or a help text may be a phrase; a noun or a verb comes first.
NO_NOUN = re.compile(r"^(who|what|where|when|how|which|why|whether|of|from|for|so|see|and)\b(?![^,]*,)", re.I)
UNUSED = re.compile(r"\b(anew|nought|whoever|whomever|such a one|somebody|nobody|anybody|he|his|him|tells|mend(s|ed)?"
                    r"|(is|are|was|were|be|been) (told|heard)|puts? back|in any case|thr(ow|ows|ew|own) off"
                    r"|so often|so long(?! as))\b", re.I)
OURS = re.compile(r"\b(parked|passed over|left out|wait list|mailbox|seekers?|the brake)\b", re.I)
TESTS = re.compile(r"\btest_\w+|\be2e \d\d|\bcases? \d\d|\bProved by\b")

Text = collections.namedtuple("Text", "file line kind text")
Finding = collections.namedtuple("Finding", "file line rule text")


def plain(text):
    """Without marks, and with one word for each piece of code, so that its punctuation does not count."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "Code", text)
    return re.sub(r"\*\*|<[^>]*>", "", text).strip()


def sentences(text):
    return [part for part in re.split(r"(?<=[.?!])[\"')]*\s+(?=[\"'(]*[A-Z0-9])", text) if part]


def words(text):
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def page_texts(file, lines):
    """Paragraphs, list items and table cells of a page, without headings, code and headers of tables."""
    paragraph, start, code = [], 0, False
    for number, line in enumerate([*lines, ""], 1):
        mark = re.match(r"\s*(```|~~~)", line)
        item = re.match(r"\s*([-*+]|\d+\.)\s+", line)
        breaks = mark or code or item or not line.strip() or line.startswith(("#", "|", "!["))
        if breaks and paragraph:
            yield Text(file, start, "paragraph", plain(" ".join(paragraph)))
            paragraph = []
        if mark:
            code = not code
        elif code or not line.strip() or line.startswith(("#", "![")):
            continue
        elif line.startswith("|"):
            if number < len(lines) and re.fullmatch(r"[|\s:-]+", lines[number]) or re.fullmatch(r"[|\s:-]+", line):
                continue
            for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")):
                yield Text(file, number, "cell", plain(cell))
        else:
            start = start if paragraph else number
            paragraph.append(line[item.end():] if item else line.strip())


def crd_texts(file, lines):
    for number, line in enumerate(lines, 1):
        found = re.match(r"(\s*)description: (.*)", line)
        if not found:
            continue
        text = found[2].strip("'")
        if text in (">-", "|", ">"):
            block = []
            for rest in lines[number:]:
                if len(rest) - len(rest.lstrip()) <= len(found[1]):
                    break
                block.append(rest.strip())
            text = " ".join(block)
        yield Text(file, number, "description", text)


def help_texts(file, lines):
    source = "\n".join(lines)
    before = r'(?m)(?:\.help\s*=\s*|^(?:REASON|EVENT)\([^"]*"\w+",[^"]*)'
    for found in re.finditer(before + r'((?:"(?:[^"\\]|\\.)*"[\s\\]*(?:[A-Z_]+\s*(?="))?)+)', source):
        text = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found[1])).replace('\\"', '"')
        yield Text(file, source.count("\n", 0, found.start()) + 1, "help", text)


def comment_texts(file, lines):
    source = "\n".join(lines)
    for found in re.finditer(r"/\*(.*?)\*/|(?:^[ \t]*#(?!!).*\n?)+", source, re.S if file.endswith(".h") else re.M):
        text = re.sub(r"^\s*[*#]+ ?", "", found[1] if found[1] is not None else found[0], flags=re.M)
        for part in re.split(r"\n\s*\n|\n\s*(?:-|\d+\.) ", text):
            yield Text(file, source.count("\n", 0, found.start()) + 1, "comment", " ".join(part.split()))


def readers():
    """Each file that is checked, with what reads the texts in it."""
    for pattern, reader in (*((pages, page_texts) for pages in PAGES), ("crds/**/*.yaml", crd_texts),
                            ("config/samples/**/*.yaml", comment_texts), ("common/api/reasons.def", help_texts)):
        yield from ((file, reader) for file in sorted(glob.glob(pattern, recursive=True)))
    for folder in SOURCES:
        for file in sorted(glob.glob(f"{folder}/**/*.[ch]", recursive=True)):
            if "/tests/" not in file:
                yield file, help_texts
                if file.endswith(".h"):
                    yield file, comment_texts


def judge(text):
    """The findings in one text."""
    measured = text.kind != "comment"
    for sentence in sentences(text.text):
        about = sentence[:90]
        if HEADLESS.search(sentence) and not sentence.endswith("?") and text.kind != "help":
            yield Finding(text.file, text.line, "L1", about)
        elif text.kind in ("description", "help") and NO_NOUN.search(sentence):
            yield Finding(text.file, text.line, "L8" if text.kind == "help" else "L1", about)
        if measured and words(sentence) > MAX_SENTENCE:
            yield Finding(text.file, text.line, "L2", f"{words(sentence)} words: {about}")
        if measured and len(re.findall(r"[:;](?=\s)", sentence)) > 1:
            yield Finding(text.file, text.line, "L2", f"several colons or semicolons: {about}")
        for rule, pattern in (("L3", UNUSED), ("L4", OURS))[:1 + measured]:
            for found in pattern.finditer(sentence):
                yield Finding(text.file, text.line, rule, f"'{found[0]}': {about}")
    if words(text.text) > {"paragraph": MAX_PARAGRAPH, "cell": MAX_CELL}.get(text.kind, sys.maxsize):
        yield Finding(text.file, text.line, "L2", f"{words(text.text)} words in a {text.kind}: {text.text[:60]}")


def findings_of(file, reader):
    lines = pathlib.Path(file).read_text(encoding="utf-8").splitlines()
    for text in reader(file, lines):
        yield from judge(text)
    if USER_PAGES.fullmatch(file):
        for number, line in enumerate(lines, 1):
            yield from (Finding(file, number, "L6", found[0]) for found in TESTS.finditer(line))


def read_limits():
    """Limits as (pattern, rule, most), in the order of the file, and exceptions as (file, text)."""
    limits, exceptions = [], []
    with open(LIMITS, encoding="utf-8") as opened:
        for line in opened:
            if found := re.match(r"except (\S+) \"(.+)\": \S", line):
                exceptions.append((found[1], found[2]))
            elif found := re.match(r"limit (\S+) (L\d) (\d+): \S", line):
                limits.append((found[1], found[2], int(found[3])))
            elif line.strip() and not line.startswith("#"):
                sys.exit(f"{LIMITS}: unusable line: {line.strip()}")
    if len(exceptions) > MAX_EXCEPTIONS:
        sys.exit(f"{LIMITS}: {len(exceptions)} exceptions, at most {MAX_EXCEPTIONS}")
    return limits, exceptions


def main(arguments):
    limits, exceptions = read_limits()
    wanted = [argument for argument in arguments if argument != "--count"]
    found = [finding for file, reader in readers() if not wanted or file in wanted
             for finding in findings_of(file, reader)
             if not any(finding.file == name and text in finding.text for name, text in exceptions)]
    if "--count" in arguments:
        for counted in (lambda f: (f.file, f.rule)), (lambda f: ("all", f.rule)):
            for (name, rule), count in sorted(collections.Counter(map(counted, found)).items()):
                print(f"{name}: {rule} {count}")
        return 0
    groups = collections.defaultdict(list)
    for finding in found:
        match = next((limit for limit in limits if limit[1] == finding.rule and
                      fnmatch.fnmatch(finding.file, limit[0])), (finding.file, finding.rule, 0))
        groups[match].append(finding)
    failed = [(limit, group) for limit, group in groups.items() if wanted or len(group) > limit[2]]
    for (pattern, rule, most), group in failed:
        for finding in group if wanted else group[-20:]:
            print(f"{finding.file}:{finding.line}: {rule}: {finding.text}")
        if not wanted and most:
            print(f"{pattern}: {rule}: {len(group)} findings, at most {most}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
