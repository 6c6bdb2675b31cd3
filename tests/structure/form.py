#!/usr/bin/env python3
"""form.py lines | comments | commits: what .clang-format and git do not refuse by themselves.

lines: no line of C or C++, tests included, is longer than 100 columns, a tab counting to the next multiple of eight.
comments: no comment of the product begins with a clause ("Where the block begins.") in the place of a name
("The address at which the block begins.") or of a sentence ("Returns the address ...").
commits: since the rule was made, a subject is at most 72 characters, names its area, and a body says why.
Prints what breaks the rule; exit status 1 if anything does, 77 if there is no history to look at.
"""
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ('include', 'src', 'tools')
TESTS = ('tests', 'examples')
COLUMNS, SUBJECT = 100, 72
SINCE = 'ebc36a8'
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CLAUSE = re.compile(r'[/*\s]*(what|where|which|who|whose|how|whether|why)\b', re.I)
AREA = re.compile(r'[^\s:][^:]*: \S|Merge |Revert ')


def long_lines(text):
    """The numbers of the lines that are too long, from 1."""
    return [number for number, line in enumerate(text.split('\n'), 1) if len(line.expandtabs(8)) > COLUMNS]


def clauses(text):
    """The lines, from 1, at which comments begin that name their subject by a clause, and its first word."""
    found = []
    for match in COMMENT_OR_TEXT.finditer(text):
        clause = match[0].startswith('/') and CLAUSE.match(match[0])
        if clause:
            found.append((text.count('\n', 0, match.start()) + 1, clause[1]))
    return found


def broken_commit(subject, body):
    """What is wrong with a commit's message; None: nothing."""
    if len(subject) > SUBJECT:
        return f'its subject has {len(subject)} characters'
    if not AREA.match(subject):
        return 'its subject does not name an area'
    return None if body.strip() else 'it has no body'


def sources(wanted):
    """The files of C and C++ in the wanted folders: each file's name and text."""
    for folder in wanted:
        for path, folders, names in os.walk(os.path.join(ROOT, folder)):
            folders.sort()
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.def', '.cpp', '.cu')):
                    file = os.path.join(path, name)
                    with open(file, encoding='utf-8', errors='replace') as text:
                        yield os.path.relpath(file, ROOT), text.read()


def lines():
    return [f'{name}:{number}: longer than {COLUMNS} columns'
            for name, text in sources(FOLDERS + TESTS) for number in long_lines(text)]


def comments():
    return [f'{name}:{number}: a comment begins with "{word}": name the thing, or say it in a sentence'
            for name, text in sources(FOLDERS) for number, word in clauses(text)]


def git(*words):
    return subprocess.run(['git', '-C', ROOT, *words], capture_output=True, text=True, check=False)


def commits():
    if git('rev-parse', '--show-toplevel').stdout.strip() != ROOT:
        sys.exit(77)
    if git('cat-file', '-e', f'{SINCE}^{{commit}}').returncode:
        sys.exit(77)  # a shallow clone
    log = git('log', '-z', '--format=%h%n%s%n%b', f'{SINCE}..HEAD').stdout
    broken = []
    for entry in filter(None, log.split('\0')):
        commit, subject, body = (entry.lstrip('\n') + '\n\n').split('\n', 2)
        reason = broken_commit(subject, body)
        if reason:
            broken.append(f'{commit}: {reason}: {subject}')
    return broken


if __name__ == '__main__':
    found = {'lines': lines, 'comments': comments, 'commits': commits}[sys.argv[1]]()
    print('\n'.join(found) or 'no rule is broken')
    sys.exit(bool(found))
