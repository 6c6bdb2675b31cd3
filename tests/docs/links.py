"""Follows the links of every Markdown file of the tree: links.py SOURCE prints TAP.

* A link into the tree leads to a file that is there, and its anchor to a heading of that file. Links to
  other hosts are not followed.
* README.md leads to every document, directly or through the documents that it links to.
* A document that a file of the tree names without a link, in a comment for example, is there: under its
  path where it is named with its folder, else somewhere. A file or folder that a document names between
  backquotes is there, too, unless a part of the path is a PLACEHOLDER.
"""

import glob
import os
import re
import sys

source = os.path.abspath(sys.argv[1])
NOT_OURS = ("build", "node_modules", "subprojects", "site-packages")  # beginnings of folder names
TEXT = (".c", ".h", ".S", ".def", ".md", ".py", ".sh", ".bats", ".txt", ".build", ".in", ".yml", ".mjs", ".ts")
INLINE = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s+(\S+)", re.M)
NAMED = re.compile(r"(?<![\w./*%}-])((?:docs/[\w/-]+|[\w-]+)\.md)\b(?![\w/-])")
QUOTED = re.compile(r"`((?:src|tests|tools|docs|packaging|examples|include|viewer|man|python)/[\w./*-]*\w)")
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}\b|NAME")


def read(path):
    with open(os.path.join(source, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def tree():
    """The paths of all files of the project, relative to its root."""
    found = []
    for folder, folders, files in os.walk(source):
        folders[:] = [name for name in folders if not name.startswith((".git", *NOT_OURS)) or name == ".github"]
        found += [os.path.relpath(os.path.join(folder, name), source) for name in files]
    return sorted(found)


def prose(path):
    """A document without its blocks of code and without code within a line."""
    text = re.sub(r"^ *```.*?^ *```", "", read(path), flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", "`", text)


def anchors(path):
    """GitHub's names of a document's headings: repeated ones are numbered."""
    text, names = re.sub(r"^ *```.*?^ *```", "", read(path), flags=re.M | re.S), {}
    for heading in re.findall(r"^#+ (.+)$", text, re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")
        names[name] = names.get(name, 0) + 1
    return {f"{name}-{index}" if index else name for name, count in names.items() for index in range(count)} | \
        set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text))


def links(path):
    """(path from the root, anchor) of each link of a document into the tree."""
    text = prose(path)
    for link in INLINE.findall(text) + REFERENCE.findall(text):
        if re.match(r"[a-z][a-z0-9+.-]*:|//", link):
            continue
        target, _, anchor = link.partition("#")
        yield (os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path), anchor


def dead_links(documents):
    dead = []
    for document in documents:
        for target, anchor in links(document):
            if not os.path.exists(os.path.join(source, target)):
                dead.append(f"{document}: {target} is not there")
            elif anchor and (not target.endswith(".md") or anchor not in anchors(target)):
                dead.append(f"{document}: {target} has no heading #{anchor}")
    return dead


def unreached(documents):
    reached, waiting = set(), ["README.md"]
    while waiting:
        document = waiting.pop()
        if document in documents and document not in reached:
            reached.add(document)
            waiting += [target for target, _ in links(document)]
    return [f"no link leads from README.md to {name}" for name in documents
            if name not in reached and (name.startswith("docs/") or os.sep not in name)]


def misnamed(files, documents):
    known = set(documents) | {os.path.basename(document) for document in documents}
    named = [(path, name) for path in files if path.endswith(TEXT) or "." not in os.path.basename(path)
             for name in sorted(set(NAMED.findall(read(path))) - known)]
    named += [(path, name) for path in documents for name in sorted(set(QUOTED.findall(read(path))))
              if not PLACEHOLDER.search(name) and not glob.glob(os.path.join(source, name))]
    return [f"{path}: {name} is not there" for path, name in named]


def main():
    files = tree()
    documents = [path for path in files if path.endswith(".md")]
    assert len(documents) > 20, f"{source} has {len(documents)} documents only"
    failures = 0
    tests = (("links lead to files and headings", dead_links(documents)),
             ("README.md leads to every document", unreached(documents)),
             ("documents and sources that are named are there", misnamed(files, documents)))
    for number, (claim, faults) in enumerate(tests, 1):
        failures += bool(faults)
        print(f"{'not ' if faults else ''}ok {number} - {claim}")
        print("".join(f"# {fault}\n" for fault in faults), end="")
    print(f"1..{len(tests)}")
    return failures != 0


sys.exit(main())
