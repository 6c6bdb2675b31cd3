#!/usr/bin/env python3
"""Measures how src/ is divided into modules, and checks the rules of that division.

A module is a folder that holds C files. A unit is a .c file with the header of its name. A unit
depends on another if one of its files includes the other's header, or uses a function or variable
that the other defines and that a header declares which the file includes, directly or not.

  structure.py                prints a table of figures
  structure.py --base REV     prints the same figures for a commit and for the working tree
  structure.py --list FIGURE  prints what a figure counts
  structure.py --check        exits with 1 if a rule is broken, and says what breaks it
"""
import argparse
import collections
import io
import os
import re
import subprocess
import sys
import tarfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# The order of the report's modules is the table of this document, lowest first.
LAYERS = 'docs/internals/report-modules.md'

# The modules whose rules --check enforces.
ENFORCED = re.compile(r'(report|base)(/|$)')

# What a top-level folder may include and use besides itself (docs/design.md).
MAY_USE = {
    'base': set(),
    'report': {'account', 'api', 'base', 'store'},
}

# Names of files that several folders have, each with the reason.
SAME_FILE = {
    'internal': 'what the files of one folder share; no other folder includes it',
}

# Functions and structs that several files define, each with the reason.
SAME_NAME = {}

# Functions declared in a header that is not their own file's, each with the reason.
OTHER_HEADER = {}

KEYWORDS = {'__attribute__', '__asm__', '_Static_assert', '_Alignas', '__typeof__', 'typeof'}
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(\w*)((?:[^\n]*\\\n)*[^\n]*)', re.M)
TOKEN = re.compile(r'[A-Za-z_]\w*|->|\.\.\.|[][{}();=,.*]')
NAME = re.compile(r'[A-Za-z_]')
OPEN, CLOSE = '([{', ')]}'


class File:
    """What one file includes, declares, defines and uses."""

    def __init__(self, path, text):
        self.path = path
        self.unit = os.path.splitext(path)[0]
        self.lines = text.count('\n')
        self.includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text, re.M)
        self.functions = []         # (name, lines, static)
        self.defines = set()        # functions and variables that other files may use
        self.own = set()            # static ones
        self.declares = set()       # functions and variables, with `extern`
        self.prototypes = set()     # functions alone
        self.structs = set()        # defined here; enums and unions too
        self.uses = set()
        self.macros = {}            # what each one's text uses
        blank = lambda m: ('' if m[0][0] == '/' else '0') + '\n' * m[0].count('\n')
        text = COMMENT_OR_TEXT.sub(blank, text)
        for directive in DIRECTIVE.finditer(text):
            if directive[1] == 'define':
                name, *words = [t[0] for t in TOKEN.finditer(directive[2])]
                self.macros[name] = self.used(words)
        text = DIRECTIVE.sub(lambda m: '\n' * m[0].count('\n'), text)
        self.read([(t[0], text.count('\n', 0, t.start())) for t in TOKEN.finditer(text)])

    @staticmethod
    def used(words):
        return {word for before, word in zip([''] + words, words) if NAME.match(word) and
                before not in ('struct', 'enum', 'union', '.', '->')}

    def use(self, words):
        self.uses |= self.used(words)

    def read(self, tokens):
        """Splits the file into declarations, whose bracketed groups become '()', '[]' and '{}'."""
        words, head, groups, start = [], [], [], None
        for word, line in tokens:
            start = line if start is None else start
            words.append(word)
            if word in CLOSE:
                if not groups:
                    sys.exit(f'{self.path}:{line + 1}: a bracket is closed that is not open')
                opened = groups.pop()
                if groups:
                    continue
                head.append((opened[0] + word, words[opened[1]:-1]))
                function = word == '}' and self.function_name(head[:-1])
                if function:
                    self.add_function(function, words, line - start + 1)
                if function or head == [('{}', head[0][1])]:
                    words, head, start = [], [], None
            elif word in OPEN:
                groups.append((word, len(words)))
            elif groups:
                continue
            elif word == ';':
                self.add_declaration([h for h in head], words)
                words, head, start = [], [], None
            else:
                head.append((word, []))
        if groups:
            sys.exit(f'{self.path}: a bracket is not closed')

    @staticmethod
    def function_name(head):
        """The name of the function whose head this is, None if it is that of something else."""
        found = None
        plain = [word for word, _ in head]
        if '=' in plain or not plain or plain[0] == 'typedef':
            return None
        for word, after in zip(plain, plain[1:]):
            if after == '()' and NAME.match(word) and word not in KEYWORDS:
                found = word
        return found

    def add_function(self, name, words, lines):
        static = 'static' in words[:words.index(name)]
        self.functions.append((name, lines, static))
        (self.own if static and self.path.endswith('.c') else self.defines).add(name)
        at = words.index(name)
        self.use(words[:at] + words[at + 1:])

    def add_declaration(self, head, words):
        plain = [word for word, _ in head]
        for kind, tag, after in zip(plain, plain[1:], plain[2:]):
            if kind in ('struct', 'enum', 'union', '()') and after == '{}':
                self.structs.add(tag)
        if len(plain) == 2 or 'typedef' in plain or '_Static_assert' in plain:
            return self.use(words)
        if any(a == b == '()' for a, b in zip(plain, plain[1:])):
            group = next(g for (w, g), (v, _) in zip(head, head[1:]) if w == v == '()')
            name, function = group[-1], False
        else:
            name = self.function_name(head)
            function = name is not None
        if not name:
            # a variable: the last name before its brackets or its value
            cut = plain[:plain.index('=')] if '=' in plain else plain
            names = [w for w, after in zip(cut, cut[1:] + [''])
                     if NAME.match(w) and after != '()']
            if not names or '{}' in cut and cut[-1] == '{}' or \
                    len(names) > 1 and names[-2] in ('struct', 'enum', 'union'):
                return self.use(words)
            name = names[-1]
        if function:
            self.prototypes.add(name)
        if function or 'extern' in plain:
            self.declares.add(name)
        elif 'static' in plain:
            self.own.add(name)
        else:
            self.defines.add(name)
        at = words.index(name)
        self.use(words[:at] + words[at + 1:])


class Tree:
    """The files of one state of src/, and what follows from them."""

    def __init__(self, texts, module_of, layers):
        self.files = {path: File(path, text) for path, text in sorted(texts.items())}
        self.module_of = module_of
        self.layers = layers
        self.reach = {}
        self.definers = collections.defaultdict(set)
        for file in self.files.values():
            for name in file.defines:
                self.definers[name].add(file.path)
        self.find_edges()

    def seen(self, path):
        """The files that a file includes, directly or not, and itself."""
        if path not in self.reach:
            self.reach[path] = {path}
            for name in self.files[path].includes:
                found = self.resolve(path, name)
                if found:
                    self.reach[path] |= self.seen(found)
        return self.reach[path]

    def resolve(self, path, name):
        for candidate in (name, os.path.join(os.path.dirname(path), name)):
            if candidate in self.files:
                return candidate
        return None

    def find_edges(self):
        """Fills `includes`, file to file, and `calls`, unit to unit with the names used."""
        self.includes = collections.defaultdict(set)
        self.calls = collections.defaultdict(lambda: collections.defaultdict(set))
        for path, file in self.files.items():
            self.includes[path] = {self.resolve(path, n) for n in file.includes} - {None}
            seen = [self.files[p] for p in self.seen(path)]
            visible = set().union(*(f.declares | f.defines for f in seen))
            for name in (self.expanded(file, seen) & visible) - file.own:
                for definer in self.definers[name]:
                    unit = self.files[definer].unit
                    if unit != file.unit and (definer.endswith('.c') or
                                              definer in self.seen(path)):
                        self.calls[file.unit][unit].add(name)

    @staticmethod
    def expanded(file, seen):
        """What a file uses, itself and by the macros of the files that it sees."""
        uses, fresh = set(), file.uses
        while fresh:
            uses |= fresh
            fresh = set().union(*(f.macros[name] for f in seen for name in fresh & set(f.macros)))
            fresh -= uses
        return uses

    def unit_edges(self):
        """Pairs of units that depend on each other's, by include or call."""
        edges = {(a, b) for a in self.calls for b in self.calls[a]}
        for path, targets in self.includes.items():
            edges |= {(self.files[path].unit, self.files[t].unit) for t in targets}
        return {(a, b) for a, b in edges if a != b}

    def module_edges(self):
        modules = ((self.module_of(a), self.module_of(b)) for a, b in self.unit_edges())
        return {(a, b) for a, b in modules if a != b}

    # Figures. Each returns a list of lines.

    def folders(self):
        count = collections.Counter(os.path.dirname(p) for p in self.files)
        return [f'{folder}: {n}' for folder, n in sorted(count.items(), key=lambda x: -x[1])]

    def module_lines(self):
        count = collections.Counter()
        for path, file in self.files.items():
            count[self.module_of(file.unit)] += file.lines
        return [f'{module}: {n}' for module, n in sorted(count.items(), key=lambda x: -x[1])]

    def include_cycles(self):
        return cycles({a: self.includes[a] for a in self.files})

    def call_cycles(self):
        return cycles({a: set(self.calls[a]) for a in list(self.calls)})

    def module_cycles(self):
        graph = collections.defaultdict(set)
        for a, b in self.module_edges():
            graph[a].add(b)
        return cycles(graph)

    def upward(self):
        """Dependencies between units of the report that point from a module to a higher one."""
        order = {module: i for i, module in enumerate(self.layers)}
        found = []
        for a, b in sorted(self.unit_edges()):
            low, high = order.get(self.module_of(a)), order.get(self.module_of(b))
            if low is not None and high is not None and low < high:
                found.append(f'{a} -> {b}' + self.why(a, b))
        return found

    def why(self, a, b):
        names = sorted(self.calls[a][b]) if b in self.calls[a] else []
        return ': ' + ' '.join(names) if names else ' (include)'

    def without_layer(self):
        return sorted({f'{m}: not in the table of {LAYERS}' for m in map(self.module_of, (
            f.unit for f in self.files.values())) if m.startswith('report') and
            m not in self.layers})

    def layering(self):
        """Uses of a top-level folder that MAY_USE does not allow."""
        found = []
        for a, b in sorted(self.unit_edges()):
            x, y = a.split('/')[0], b.split('/')[0]
            if x != y and x in MAY_USE and y not in MAY_USE[x]:
                found.append(f'{a} -> {b}' + self.why(a, b))
        return found

    def other_headers(self):
        """Functions that a header declares and another unit than its own defines."""
        found = []
        for path, file in self.files.items():
            for name in sorted(file.prototypes if path.endswith('.h') else ()):
                units = {self.files[p].unit for p in self.definers[name]}
                if file.unit in units or name in OTHER_HEADER:
                    continue
                if path.endswith('/internal.h') and any(
                        os.path.dirname(u) == os.path.dirname(path) for u in units):
                    continue
                found.append(f'{path}: {name}, ' + (
                    'defined in ' + ' '.join(sorted(units)) if units else 'not defined in src'))
        return found

    def foreign_internals(self):
        return [f'{path} includes {target}' for path in self.files
                for target in sorted(self.includes[path])
                if os.path.basename(target) == 'internal.h' and
                os.path.dirname(target) != os.path.dirname(path)]

    def unused(self):
        """Functions that other files may use and that none uses, in src, tools or tests."""
        used = set().union(*(f.uses for f in self.files.values())) | self.outside
        return [f'{f.path}: {name}' for f in self.files.values() for name, _, static in
                f.functions if not static and name.startswith('gm_') and name not in used]

    def longest(self):
        functions = [(lines, f.path, name) for f in self.files.values()
                     for name, lines, _ in f.functions]
        return [f'{lines}: {name} in {path}' for lines, path, name in sorted(functions)[::-1]]

    def same_files(self):
        units = collections.defaultdict(set)
        for file in self.files.values():
            units[os.path.basename(file.unit)].add(file.unit)
        return [f'{name}: ' + ' '.join(sorted(where)) for name, where in sorted(units.items())
                if len(where) > 1 and name not in SAME_FILE]

    def same_names(self):
        """Structs and functions of the name space gm_ that more than one file defines."""
        where = collections.defaultdict(set)
        for file in self.files.values():
            for name in file.structs:
                where['struct ' + name].add(file.path)
            for name, _, static in file.functions:
                if not static:
                    where[name].add(file.path)
        return [f'{name}: ' + ' '.join(sorted(paths)) for name, paths in sorted(where.items())
                if len(paths) > 1 and 'gm_' in name and name not in SAME_NAME]


def cycles(graph):
    """The strongly connected parts of a graph that have more than one node, by Tarjan."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in number:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], number[target])
        if low[node] == number[node]:
            part = stack[stack.index(node):]
            del stack[stack.index(node):]
            if len(part) > 1:
                found.append(' '.join(sorted(part)))

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return found


FIGURES = {
    'files in the largest folder': (Tree.folders, lambda x: x[0].split(': ')[::-1]),
    'lines of the largest module': (Tree.module_lines, lambda x: x[0].split(': ')[::-1]),
    'lines of the longest function': (Tree.longest, lambda x: x[0].split(': ')),
    'include cycles': (Tree.include_cycles, None),
    'call cycles between files': (Tree.call_cycles, None),
    'cycles between modules': (Tree.module_cycles, None),
    'upward dependencies in the report': (Tree.upward, None),
    'modules without a layer': (Tree.without_layer, None),
    'uses against the layering of src': (Tree.layering, None),
    "functions declared in another file's header": (Tree.other_headers, None),
    "internal.h of another folder": (Tree.foreign_internals, None),
    'file names used twice': (Tree.same_files, None),
    'struct and function names used twice': (Tree.same_names, None),
    'functions that nothing uses': (Tree.unused, None),
}


def working_tree():
    texts = {}
    for folder in ('src', 'tools', 'tests'):
        for where, _, names in os.walk(os.path.join(TOP, folder)):
            for name in names:
                if name.endswith(('.c', '.h')):
                    path = os.path.join(where, name)
                    with open(path, encoding='utf-8') as file:
                        texts[os.path.relpath(path, TOP)] = file.read()
    return texts


def git(*words, text=True):
    return subprocess.run(('git', '-C', TOP) + words, check=True, text=text,
                          stdout=subprocess.PIPE).stdout


def commit(revision):
    texts = {}
    archive = io.BytesIO(git('archive', revision, 'src', 'tools', 'tests', text=False))
    with tarfile.open(fileobj=archive) as files:
        for member in files:
            if member.isfile() and member.name.endswith(('.c', '.h')):
                texts[member.name] = files.extractfile(member).read().decode()
    return texts


def layers():
    with open(os.path.join(TOP, LAYERS), encoding='utf-8') as file:
        return re.findall(r'^\| *\d+ *\| *`([\w/]+)` *\|', file.read(), re.M)


def tree(texts, module_of):
    """A Tree of the files below src/; what tools and tests use counts as used."""
    inside = {p[4:]: t for p, t in texts.items() if p.startswith('src/')}
    made = Tree(inside, module_of, layers())
    made.outside = set()
    for path, text in texts.items():
        if not path.startswith('src/'):
            made.outside |= set(re.findall(r'\bgm_\w+', text))
    return made


def folder_of(unit):
    return os.path.dirname(unit)


def renamed(revision):
    """The module in which the working tree has a unit of the commit."""
    moved = {}
    for line in git('diff', '-M30%', '-l0', '--name-status', '--diff-filter=R', revision, '--',
                    'src').splitlines():
        _, old, new = line.split('\t')
        moved.setdefault(os.path.splitext(old[4:])[0], os.path.splitext(new[4:])[0])
    return lambda unit: folder_of(moved.get(unit, unit))


def value(figure, made):
    measure, form = FIGURES[figure]
    items = measure(made)
    return ' '.join(form(items)) if form else str(len(items))


def print_table(base, now):
    rows = [(figure, value(figure, base) if base else '', value(figure, now))
            for figure in FIGURES]
    for figure, before, after in rows:
        print(f'{figure:45}  {before:32}  {after}' if base else f'{figure:45}  {after}')
    for title, measure in (('files per folder', Tree.folders), ('lines', Tree.module_lines)):
        print(f'\n{title}:')
        old = dict(x.split(': ') for x in measure(base)) if base else {}
        new = dict(x.split(': ') for x in measure(now))
        for name in sorted(old | new):
            print(f'  {name:20}' + (f'{old.get(name, "-"):>8}' if base else '') +
                  f'{new.get(name, "-"):>8}')


def check(now):
    """Prints what breaks a rule in the modules that are enforced; returns how many things do."""
    broken = 0
    for figure, (measure, form) in FIGURES.items():
        for item in measure(now) if form is None else ():
            if any(ENFORCED.match(os.path.dirname(word) or word)
                   for word in re.findall(r'[\w/]+', item) if '/' in word or word in now.modules):
                print(f'{figure}: {item}')
                broken += 1
    return broken


def main():
    options = argparse.ArgumentParser()
    options.add_argument('--base', metavar='REV')
    options.add_argument('--list', choices=FIGURES, metavar='FIGURE')
    options.add_argument('--check', action='store_true')
    options = options.parse_args()
    now = tree(working_tree(), folder_of)
    if options.check:
        sys.exit(1 if check(now) else 0)
    if options.list:
        print('\n'.join(FIGURES[options.list][0](now)))
        return
    base = tree(commit(options.base), renamed(options.base)) if options.base else None
    print_table(base, now)


if __name__ == '__main__':
    main()
