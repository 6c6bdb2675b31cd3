#!/usr/bin/env python3
"""structure.py against small trees, each of which breaks one rule or none."""
import contextlib
import io
import os
import sys
import unittest

sys.dont_write_bytecode = True

import form
import structure

HEADER = 'int gm_low(void);\n'
LOW = {'report/a/low.h': HEADER,
       'report/a/low.c': '#include "report/a/low.h"\nint gm_low(void)\n{\n\treturn 1;\n}\n'}


def found(figure, files):
    """The lines of a figure for a tree whose report has the layers a, b and c."""
    structure.layers = lambda: ['report/a', 'report/b', 'report/c']
    structure.may_use = lambda: {'report': {'store', 'base'}, 'store': {'base'}}
    tree = structure.Tree(files, os.path.dirname)
    tree.outside = set()
    return structure.FIGURES[figure][0](tree)


def user(include, body, head=''):
    return f'#include "{include}"\n{head}\nint gm_use(void)\n{{\n\treturn {body};\n}}\n'


class Structure(unittest.TestCase):
    def test_a_call_upwards_is_found(self):
        files = LOW | {'report/a/low.c': user('report/b/high.h', 'gm_high()'),
                       'report/b/high.h': 'int gm_high(void);\n',
                       'report/b/high.c': 'int gm_high(void)\n{\n\treturn 1;\n}\n'}
        self.assertEqual(found('upward dependencies in the report', files),
                         ['report/a/low -> report/b/high: gm_high'])

    def test_a_call_downwards_is_not(self):
        files = LOW | {'report/b/high.c': user('report/a/low.h', 'gm_low()')}
        self.assertEqual(found('upward dependencies in the report', files), [])

    def test_an_include_upwards_is_found_without_a_call(self):
        files = LOW | {'report/a/low.h': '#include "report/b/high.h"\n',
                       'report/b/high.h': 'struct gm_high;\n'}
        self.assertEqual(found('upward dependencies in the report', files),
                         ['report/a/low -> report/b/high: include'])

    def test_files_that_call_each_other_are_a_cycle(self):
        files = {'report/a/internal.h': 'int gm_one(void);\nint gm_two(void);\n',
                 'report/a/one.c': '#include "report/a/internal.h"\n'
                                   'int gm_one(void)\n{\n\treturn gm_two();\n}\n',
                 'report/a/two.c': '#include "report/a/internal.h"\n'
                                   'int gm_two(void)\n{\n\treturn gm_one();\n}\n'}
        self.assertEqual(found('call cycles between files', files),
                         ['report/a/one report/a/two'])

    def test_a_call_by_a_macro_counts_where_the_macro_is_used(self):
        files = LOW | {'report/a/macro.h': '#include "report/a/low.h"\n'
                                           '#define GM_TWICE(x) \\\n\t(gm_##x() + gm_##x())\n',
                       'report/b/high.c': user('report/a/macro.h', 'GM_TWICE(low)')}
        structure.layers = lambda: []
        tree = structure.Tree(files, os.path.dirname)
        self.assertIn('gm_low', tree.calls['report/b/high']['report/a/low'])
        self.assertNotIn('report/a/macro', tree.calls)

    def test_names_of_comments_texts_members_and_structs_are_no_calls(self):
        body = '0; /* gm_low() */ puts("gm_low()"); x.gm_low = p->gm_low'
        files = LOW | {'report/b/high.c': user('report/a/low.h', body, 'struct gm_low *p;')}
        structure.layers = lambda: []
        self.assertEqual(structure.Tree(files, os.path.dirname).calls, {})

    def test_a_static_function_hides_one_of_its_name(self):
        files = LOW | {'report/b/high.c': user('report/a/low.h', 'gm_low()',
                                               'static int gm_low(void)\n{\n\treturn 2;\n}\n')}
        structure.layers = lambda: []
        self.assertEqual(structure.Tree(files, os.path.dirname).calls, {})

    def test_modules_that_include_each_other_are_a_cycle(self):
        files = {'report/a/one.h': '#include "report/b/one.h"\n',
                 'report/b/one.h': '', 'report/b/two.h': '#include "report/a/two.h"\n',
                 'report/a/two.h': ''}
        self.assertEqual(found('cycles between modules', files), ['report/a report/b'])
        self.assertEqual(found('include cycles', files), [])

    def test_headers_that_include_each_other_are_a_cycle(self):
        files = {'report/a/one.h': '#include "report/a/two.h"\n',
                 'report/a/two.h': '#include "report/a/one.h"\n'}
        self.assertEqual(found('include cycles', files), ['report/a/one.h report/a/two.h'])

    def test_a_declaration_belongs_into_the_header_of_its_file(self):
        figure = "declarations in another file's header"
        self.assertEqual(found(figure, LOW), [])
        moved = {'report/a/other.h': HEADER + 'extern const int gm_number[];\n',
                 'report/a/low.c': LOW['report/a/low.c'] + 'const int gm_number[] = {1, 2};\n'}
        self.assertEqual(len(found(figure, moved)), 2)
        self.assertEqual(found(figure, {'report/a/internal.h': HEADER,
                                        'report/a/low.c': LOW['report/a/low.c']}), [])
        self.assertEqual(len(found(figure, {'report/b/internal.h': HEADER,
                                            'report/a/low.c': LOW['report/a/low.c']})), 1)

    def test_an_internal_header_is_of_its_folder(self):
        files = {'report/a/internal.h': '', 'report/a/one.c': '#include "report/a/internal.h"\n',
                 'report/b/two.c': '#include "report/a/internal.h"\n'}
        self.assertEqual(found('uses of an internal.h of another folder', files),
                         ['report/b/two.c includes report/a/internal.h'])

    def test_a_table_is_not_used_where_tables_are_not_known(self):
        text = 'int gm_f(void)\n{\n\treturn gm_store_string("") + gm_store_record(GM_TABLE_A);\n}\n'
        self.assertEqual(found('uses of tables where they are not known',
                               {'recorder/a.c': text, 'track/b.c': text}),
                         ['recorder/a.c: GM_TABLE_A', 'recorder/a.c: gm_store_record'])

    def test_a_folder_uses_what_the_design_says(self):
        files = {'track/one.h': '', 'store/one.h': '#include "track/one.h"\n',
                 'report/a/one.h': '#include "store/one.h"\n'}
        self.assertEqual(found('dependencies against the design', files),
                         ['store/one -> track/one: include'])

    def test_rules_include_the_format_and_remember_nothing(self):
        text = ('#include "account/two.h"\n#include "store/layout.h"\n#include "store/reader.h"\n'
                'static unsigned calls;\nstruct gm_sum {\n\tint x;\n};\n'
                'static inline int gm_one(void)\n{\n\tint here = 1;\n\n\treturn here;\n}\n')
        self.assertEqual(found('includes and variables of pure modules',
                               {'account/one.h': text, 'track/one.c': text}),
                         ['account/one.h: store/reader.h', 'account/one.h: calls'])

    def test_names_are_given_once(self):
        files = {'report/a/one.h': 'struct gm_thing {\n\tint x;\n};\n',
                 'track/one.c': 'struct gm_thing {\n\tint y;\n};\nint gm_f(void)\n{\n}\n',
                 'report/b/two.c': 'int gm_f(void)\n{\n}\nstruct row {\n};\n',
                 'report/c/three.c': 'struct row {\n};\nstatic struct gm_thing x = {0};\n'}
        self.assertEqual(found('struct and function names used twice', files),
                         ['gm_f: report/b/two track/one',
                          'struct gm_thing: report/a/one track/one'])
        self.assertEqual(found('file names used twice', files), ['one: report/a/one track/one'])

    def test_a_function_that_nothing_uses(self):
        files = LOW | {'report/b/high.c': user('report/a/low.h', 'gm_low()')}
        self.assertEqual(found('functions that nothing uses', files), ['report/b/high.c: gm_use'])

    def test_the_check_says_what_breaks_a_rule(self):
        files = {'report/a/internal.h': 'int gm_none(void);\n'}
        found('include cycles', files)
        tree = structure.Tree(files, os.path.dirname)
        tree.outside = {'gm_none'}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            self.assertEqual(structure.check(tree), 1)
        self.assertIn('report/a/internal.h: gm_none of no file', said.getvalue())

    def test_a_module_has_a_layer(self):
        self.assertEqual(found('modules of the report without a layer', LOW | {
            'report/d/x.h': ''}), ['report/d'])

    def test_lines_of_a_function(self):
        text = '#define X \\\n\t1\nint gm_f(void)\n{\n\tif (X) {\n\t}\n\treturn 0;\n}\n'
        self.assertEqual(found('lines of the longest function', {'report/a/f.c': text}),
                         ['6 of gm_f in report/a/f.c'])


class FormTest(unittest.TestCase):
    def test_a_tab_counts_to_the_next_multiple_of_eight(self):
        self.assertEqual(form.long_lines('a\tb' + 'c' * 91 + '\n' + 'a\tb' + 'c' * 92), [2])

    def test_comments_that_begin_with_a_clause(self):
        text = ('/*\n * Where it begins.\n */\nint a; /* how many */\n/* The number of them, and why. */\n'
                '/* Wherever it is. */\nchar *b = "/* what */", c = \'"\';\n/* Whether c is. */\n')
        self.assertEqual(form.clauses(text), [(1, 'Where'), (4, 'how'), (8, 'Whether')])

    def test_subjects_and_bodies(self):
        self.assertIsNone(form.broken_commit('judge: ' + 'a' * 65, 'Why.'))
        self.assertEqual(form.broken_commit('judge: ' + 'a' * 66, 'Why.'), 'its subject has 73 characters')
        self.assertEqual(form.broken_commit('Change the judge', 'Why.'), 'its subject does not name an area')
        self.assertEqual(form.broken_commit('judge: add a rule', ' \n'), 'it has no body')
        self.assertIsNone(form.broken_commit('Merge main', 'Why.'))


if __name__ == '__main__':
    unittest.main()
