#!/usr/bin/env python3
"""Measures how src/ is divided into modules, and checks the rules of that division.

A module is a folder that holds C files. A unit is a .c file with the header of its name. A unit
depends on another if one of its files includes the other's header, or uses a function or variable
that the other defines and that a header declares which the file includes, directly or not. Uses
inside a macro count where the macro is used; a name that a macro makes by ## counts as all names
that begin so.

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

# What a top-level folder of src/ may use is the last column of the table under "Modules" here.
DESIGN = 'docs/design.md'

# The order of the report's modules is the table of this document, lowest first.
LAYERS = 'docs/internals/report-modules.md'

# Folders that know nothing of the file's tables, and the names by which tables are used.
WITHOUT_TABLES = {'api', 'cupti', 'interpose', 'recorder'}
TABLES = re.compile(r'GM_TABLE_|gm_store_(append|at|number|publish|record|spot|try_room)$')

# Files of one name in several folders, each name with the reason.
SAME_FILE = {
    'internal': 'what the files of one folder share; no other folder includes it',
}

# Files that are linked in the place of others and define the same, each with the reason.
INSTEAD = {
    'cupti/none': 'in the place of cupti/backend, where there are no headers of CUPTI',
}

# Functions and variables that another file's header declares, each with the reason.
OTHER_HEADER = {}

# Folders of pure functions: what of other folders they may include. They have no variables.
PURE = {'account': {'store/layout.h'}}

KEYWORDS = {'__attribute__', '__asm__', '_Static_assert', '_Alignas', '__typeof__', 'typeof'}
COMMENT_OR_TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(\w*)((?:[^\n]*\\\n)*[^\n]*)', re.M)
TOKEN = re.compile(r'[A-Za-z_]\w*(?:\s*##)?|->|\.\.\.|[][{}();=,.*]')
NAME = re.compile(r'[A-Za-z_]')
OPEN, CLOSE = '([{', ')]}'
SUFFIXES = ('.c', '.h', '.def', '.S')


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
        self.declares = set()       # functions, and variables with `extern`
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
        tag_only = len(plain) == 2 and plain[0] in ('struct', 'enum', 'union')
        if tag_only or 'typedef' in plain or '_Static_assert' in plain:
            return self.use(words)
        if any(a == b == '()' for a, b in zip(plain, plain[1:])):
            group = next(g for (w, g), (v, _) in zip(head, head[1:]) if w == v == '()')
            name, function = group[-1], False   # a pointer to a function
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

    def __init__(self, texts, module_of):
        self.files = {path: File(path, text) for path, text in sorted(texts.items())
                      if path.endswith(('.c', '.h'))}
        for file in self.files.values():    # tables of macros: what they use is used there
            for name in file.includes:
                if name.endswith('.def'):
                    file.use(TOKEN.findall(COMMENT_OR_TEXT.sub('', texts.get(name, ''))))
        self.units = {file.unit for file in self.files.values()}
        self.module_of = module_of
        self.layers = layers()
        self.may_use = may_use()
        self.reach = {}
        self.definers = collections.defaultdict(set)
        for file in self.files.values():
            for name in file.defines if file.unit not in INSTEAD else ():
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
            for name in (self.expanded(file, seen, visible) & visible) - file.own:
                for definer in self.definers[name]:
                    unit = self.files[definer].unit
                    if unit != file.unit and (definer.endswith('.c') or
                                              definer in self.seen(path)):
                        self.calls[file.unit][unit].add(name)

    @staticmethod
    def expanded(file, seen, visible):
        """What a file uses, itself and by the macros of the files that it sees."""
        uses, fresh = set(), file.uses
        while fresh:
            uses |= fresh
            fresh = set().union(*(f.macros[name] for f in seen for name in fresh & set(f.macros)))
            fresh |= pasted(fresh, visible)
            fresh -= uses
        return uses

    def unit_edges(self):
        """Pairs of units of which the first depends on the second, by include or call."""
        edges = {(a, b) for a in self.calls for b in self.calls[a]}
        for path, targets in self.includes.items():
            edges |= {(self.files[path].unit, self.files[t].unit) for t in targets}
        return sorted((a, b) for a, b in edges if a != b)

    # Figures. Each returns a list of lines of text.

    def folders(self):
        count = collections.Counter(os.path.dirname(p) for p in self.files)
        return [f'{n} in {folder}' for folder, n in count.most_common()]

    def module_lines(self):
        count = collections.Counter()
        for file in self.files.values():
            count[self.module_of(file.unit)] += file.lines
        return [f'{n} in {module}' for module, n in count.most_common()]

    def longest(self):
        functions = [(lines, name, f.path) for f in self.files.values()
                     for name, lines, _ in f.functions]
        return [f'{lines} of {name} in {path}'
                for lines, name, path in sorted(functions, reverse=True)]

    def include_cycles(self):
        return cycles(self.includes)

    def call_cycles(self):
        return cycles(self.calls)

    def module_cycles(self):
        graph = collections.defaultdict(set)
        for a, b in self.unit_edges():
            graph[self.module_of(a)].add(self.module_of(b))
        return cycles(graph)

    def why(self, a, b):
        names = sorted(self.calls[a][b]) if b in self.calls.get(a, ()) else []
        return f'{a} -> {b}: ' + (' '.join(names) or 'include')

    def upward(self):
        """Dependencies between units of the report from a module to one that is above it."""
        order = {module: i for i, module in enumerate(self.layers)}
        edges = [(a, b) for a, b in self.unit_edges()
                 if order.get(self.module_of(a), -1) < order.get(self.module_of(b), -1)
                 and self.module_of(a) in order]
        return [self.why(a, b) for a, b in edges]

    def without_layer(self):
        modules = {self.module_of(unit) for unit in self.units}
        return [module for module in sorted(modules)
                if module.startswith('report') and module not in self.layers]

    def layering(self):
        """Uses of a folder of src/ that the table in DESIGN does not name."""
        return [self.why(a, b) for a, b in self.unit_edges()
                if top(a) != top(b) and top(b) not in self.may_use.get(top(a), ())]

    def other_headers(self):
        """Functions and variables that a header declares and another unit than its own defines."""
        found = []
        for path, file in self.files.items():
            for name in sorted(file.declares if path.endswith('.h') else ()):
                units = {self.files[p].unit for p in self.definers[name]}
                near = {os.path.dirname(unit) for unit in units}
                if file.unit not in units and name not in OTHER_HEADER and not (
                        path.endswith('/internal.h') and os.path.dirname(path) in near):
                    found.append(f'{path}: {name} of ' + (' '.join(sorted(units)) or 'no file'))
        return found

    def foreign_internals(self):
        return [f'{path} includes {target}' for path in self.files
                for target in sorted(self.includes[path])
                if os.path.basename(target) == 'internal.h' and
                os.path.dirname(target) != os.path.dirname(path)]

    def table_uses(self):
        return [f'{f.path}: {name}' for f in self.files.values()
                if top(f.path) in WITHOUT_TABLES for name in sorted(f.uses)
                if TABLES.match(name)]

    def impure(self):
        """What a folder of pure functions includes beyond the rule, and what it remembers."""
        found = []
        for file in self.files.values():
            folder = top(file.path)
            if folder not in PURE:
                continue
            names = [name for name in file.includes
                     if top(name) != folder and name not in PURE[folder]]
            names += sorted((file.defines | file.own) - {name for name, _, _ in file.functions})
            found += [f'{file.path}: {name}' for name in names]
        return found

    def unused(self):
        """Functions for other files (gm_) that nothing uses, here or in tools and tests."""
        used = set().union(*(f.uses for f in self.files.values()),
                           *(uses for f in self.files.values() for uses in f.macros.values()))
        used |= pasted(used, set(self.definers))
        return [f'{f.path}: {name}' for f in self.files.values()
                for name, _, static in f.functions
                if name.startswith('gm_') and not name in used | self.outside]

    def same_files(self):
        units = collections.defaultdict(set)
        for unit in self.units:
            units[os.path.basename(unit)].add(unit)
        return [f'{name}: ' + ' '.join(sorted(where))
                for name, where in sorted(units.items())
                if len(where) > 1 and name not in SAME_FILE]

    def same_names(self):
        """Structs and functions for other files (gm_) that more than one file defines."""
        where = collections.defaultdict(set)
        for file in self.files.values():
            if file.unit in INSTEAD:
                continue
            for name in file.structs:
                where['struct ' + name].add(file.unit)
            for name, _, static in file.functions:
                if not static or file.path.endswith('.h'):
                    where[name].add(file.unit)
        return [f'{name}: ' + ' '.join(sorted(units))
                for name, units in sorted(where.items())
                if len(units) > 1 and 'gm_' in name]


def pasted(uses, names):
    """The names that begin as one of the uses that end in ##."""
    begins = tuple(use.rstrip('# ') for use in uses if use.endswith('##'))
    return {name for name in names if name.startswith(begins)} if begins else set()


def top(path):
    return path.split('/')[0]


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


# Each figure, and whether it is the first line of its list or the length of it: the latter are
# rules, whose lists are empty.
FIRST, COUNT = 'first', 'count'
FIGURES = {
    'files in the largest folder': (Tree.folders, FIRST),
    'lines of the largest module': (Tree.module_lines, FIRST),
    'lines of the longest function': (Tree.longest, FIRST),
    'include cycles': (Tree.include_cycles, COUNT),
    'call cycles between files': (Tree.call_cycles, COUNT),
    'cycles between modules': (Tree.module_cycles, COUNT),
    'upward dependencies in the report': (Tree.upward, COUNT),
    'modules of the report without a layer': (Tree.without_layer, COUNT),
    'dependencies against the design': (Tree.layering, COUNT),
    "declarations in another file's header": (Tree.other_headers, COUNT),
    'uses of an internal.h of another folder': (Tree.foreign_internals, COUNT),
    'uses of tables where they are not known': (Tree.table_uses, COUNT),
    'includes and variables of pure modules': (Tree.impure, COUNT),
    'file names used twice': (Tree.same_files, COUNT),
    'struct and function names used twice': (Tree.same_names, COUNT),
    'functions that nothing uses': (Tree.unused, COUNT),
}


def working_tree():
    texts = {}
    for folder in ('src', 'tools', 'tests'):
        for where, _, names in os.walk(os.path.join(TOP, folder)):
            for name in names:
                if name.endswith(SUFFIXES):
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
            if member.isfile() and member.name.endswith(SUFFIXES):
                texts[member.name] = files.extractfile(member).read().decode()
    return texts


def rows(path, columns):
    """The cells of a document's tables that have so many columns."""
    with open(os.path.join(TOP, path), encoding='utf-8') as file:
        cells = [[c.strip() for c in line.strip().strip('|').split('|')]
                 for line in file if line.startswith('|')]
    return [row for row in cells if len(row) == columns]


def layers():
    return [module.strip('`') for _, module, _ in rows(LAYERS, 3) if '/' in module]


def may_use():
    """What each folder of src/ may use, by the table in DESIGN; `base/` is for all."""
    allowed = {}
    cells = {folder.strip('`/'): uses for folder, _, uses in rows(DESIGN, 3)
             if re.fullmatch(r'`\w+/`', folder)}

    def add(folder):
        if folder not in allowed:
            named = re.findall(r'`(\w+)/`', cells.get(folder, ''))
            allowed[folder] = set(named)
            if 'what that uses' in cells.get(folder, ''):
                for other in named:
                    allowed[folder] |= add(other)
        return allowed[folder]

    for folder in cells:
        add(folder)
    return {folder: uses | {'base'} for folder, uses in allowed.items()}


def tree(texts, module_of):
    """A Tree of the files below src/; what tools, tests and assembly name counts as
    used."""
    inside = {p[4:]: t for p, t in texts.items() if p.startswith('src/')}
    made = Tree(inside, module_of)
    made.outside = set()
    for path, text in texts.items():
        if path.startswith('src/') and not path.endswith('.S'):
            text = ' '.join(re.findall(r'"[^"\n]*"', text))    # assembly in C
        made.outside |= set(re.findall(r'\bgm_\w+', text))
    return made


def renamed(revision):
    """The module in which the working tree has a unit of the commit."""
    moved = {}
    for line in git('diff', '-M30%', '-l0', '--name-status', '--diff-filter=R', revision, '--',
                    'src').splitlines():
        _, old, new = line.split('\t')
        moved.setdefault(os.path.splitext(old[4:])[0], os.path.splitext(new[4:])[0])
    return lambda unit: os.path.dirname(moved.get(unit, unit))


def value(figure, made):
    measure, form = FIGURES[figure]
    lines = measure(made)
    return str(len(lines)) if form == COUNT else lines[0] if lines else ''


def counts(measure, made):
    return {name: n for n, name in (text.split(' in ') for text in measure(made))}


def print_table(base, now):
    for figure in FIGURES:
        before = f'{value(figure, base):48}  ' if base else ''
        print(f'{figure:40}  {before}{value(figure, now)}')
    for title, measure in (('files', Tree.folders), ('lines', Tree.module_lines)):
        old, new = counts(measure, base) if base else {}, counts(measure, now)
        print()
        for name in sorted(old | new):
            print(f'{title} in {name:32}' + (f'{old.get(name, "-"):>8}' if base else '') +
                  f'{new.get(name, "-"):>8}')


def check(now):
    """Prints what breaks a rule; returns how many things do."""
    broken = [f'{figure}: {text}' for figure, (measure, form) in FIGURES.items()
              if form == COUNT for text in measure(now)]
    print('\n'.join(broken) or 'no rule is broken')
    return len(broken)


def main():
    options = argparse.ArgumentParser(description=__doc__.split('\n', maxsplit=1)[0])
    options.add_argument('--base', metavar='REV')
    options.add_argument('--list', choices=FIGURES, metavar='FIGURE')
    options.add_argument('--check', action='store_true')
    options = options.parse_args()
    now = tree(working_tree(), os.path.dirname)
    if options.check:
        sys.exit(1 if check(now) else 0)
    if options.list:
        print('\n'.join(FIGURES[options.list][0](now)))
        return
    print_table(tree(commit(options.base), renamed(options.base)) if options.base else None, now)


if __name__ == '__main__':
    main()
