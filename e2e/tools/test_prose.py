"""What prose.py finds, and what it lets pass."""

import contextlib
import io
import os
import pathlib
import tempfile
import unittest

import prose

LONG = "a sentence of " + "very " * 23 + "many words."


class Prose(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(folder.name)
        self.limits("")

    def write(self, file, text):
        path = pathlib.Path(file)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def limits(self, text):
        self.write(prose.LIMITS, text)

    def run_it(self, *arguments):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            status = prose.main(arguments)
        return status, printed.getvalue()

    def rules_of(self, file, text):
        """The rules that the file breaks, each as often as it does."""
        self.write(file, text)
        _, printed = self.run_it(file)
        return [line.split(": ")[1] for line in printed.splitlines()]

    def test_finds_each_rule_in_a_page(self):
        for text, rule in (("Who is lost goes on.", "L1"), ("It runs. What comes later is dropped.", "L1"),
                           ("Nothing is lost; who comes later waits.", "L1"), ("When the sample came.", "L1"),
                           (LONG, "L2"), ("One: two: three.", "L2"), ("Short. " * 81, "L2"),
                           ("It starts anew.", "L3"), ("The device is told to stop.", "L3"), ("It waits so long.", "L3"),
                           ("The field is put back.", "L3"), ("A parked result.", "L4"),
                           ("It holds; `test_fence`.", "L6"), ("Proved by chance.", "L6"), ("See e2e 72.", "L6"),
                           ("| a | b |\n|---|---|\n| " + "word " * 31 + "| c |", "L2"),
                           ("| a | b |\n|---|---|\n| Reason | who waits |", "L1")):
            with self.subTest(text):
                self.assertEqual(set(self.rules_of("docs/page.md", text)), {rule})

    def test_lets_plain_english_pass(self):
        for text in ("The controller restarts the Task.", "When the broker is away, the Task waits.",
                     "What is a Proplet?", "# What happens\n\nText.", "```\nWho is told anew\n```\n",
                     "Use `a: b; c: d` and `e; f`.", "| what | who |\n|---|---|\n| a | b |",
                     "As long as it runs, so long as it lasts.", "- One.\n- Two.\n"):
            with self.subTest(text):
                self.assertEqual(self.rules_of("docs/page.md", text), [])

    def test_contributors_pages_name_tests(self):
        for file in ("docs/explanation/architecture.md", "docs/contributing/evidence.md", "CONTRIBUTING.md"):
            with self.subTest(file):
                self.assertEqual(self.rules_of(file, "It is proved by test_fence."), [])

    def test_reads_descriptions_in_every_form(self):
        for text in ("description: When it came.", "description: 'Who runs it: all.'",
                     "  description: >-\n    Its time.\n    What comes later is dropped.\n  type: string"):
            with self.subTest(text):
                self.assertEqual(self.rules_of("crds/tasks.yaml", text), ["L1"])
        self.assertEqual(self.rules_of("crds/tasks.yaml", "description: Time of the start.\ntype: what"), [])

    def test_reads_help_texts_of_sources_only(self):
        self.assertEqual(self.rules_of("controller/options.c", '{ .help = "where it "\n   NAME " listens" }'), ["L8"])
        self.assertEqual(self.rules_of("controller/options.c", '{ .help = "address", .name = "who is told" }'), [])
        self.assertEqual(self.rules_of("controller/tests/test_options.c", '{ .help = "where it listens" }'), [])

    def test_reads_meanings_of_reasons(self):
        self.assertEqual(self.rules_of("common/api/reasons.def", '#define REASON(a, b)\nREASON(A, "A", OF_TASK | OF_JOB,\n'
                                       '       "somebody waits")\nEVENT(B, NORMAL, "B", "it is told")'), ["L3", "L3"])

    def test_reads_comments_of_headers(self):
        self.assertEqual(self.rules_of("common/a.h", "/* Names of all.\n *\n * Who waits is woken. */\nint who;"), ["L1"])
        self.assertEqual(self.rules_of("common/a.c", "/* Who waits is woken. */"), [])

    def test_a_limit_holds_a_whole_group(self):
        self.write("docs/a.md", "Who goes. It is told.")
        self.write("docs/b.md", "Who comes.")
        self.limits("limit docs/* L1 2: of the former text\nlimit docs/* L3 1: of the former text\n")
        self.assertEqual(self.run_it(), (0, ""))
        self.limits("limit docs/* L1 1: of the former text\nlimit docs/* L3 1: of the former text\n")
        status, printed = self.run_it()
        self.assertEqual((status, "docs/*: L1: 2 findings, at most 1" in printed), (1, True))

    def test_counts_by_file_and_in_sum(self):
        self.write("docs/a.md", "Who goes. It is told.")
        self.assertEqual(self.run_it("--count"), (0, "docs/a.md: L1 1\ndocs/a.md: L3 1\nall: L1 1\nall: L3 1\n"))

    def test_exceptions_are_few_and_have_reasons(self):
        self.write("docs/a.md", "What happens next is a mystery.")
        self.limits('except docs/a.md "What happens next": the name of a film\n')
        self.assertEqual(self.run_it(), (0, ""))
        for text in ('except docs/a.md "What happens next": \n', 'except docs/a.md "x": y\n' * 11):
            self.limits(text)
            with self.assertRaises(SystemExit):
                self.run_it()


if __name__ == "__main__":
    unittest.main()
