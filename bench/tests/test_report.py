#!/usr/bin/env python3
"""What report.py makes of figures, growth.py of series, tasks.py of what an API server says, and
settings.sh of variables."""

import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

BENCH = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(BENCH))

import growth
import report
import tasks


def line(what, value, who="ours", budget="", scenario="s", **more):
    return {"scenario": scenario, "who": who, "what": what, "value": value, "budget": budget, **more}


class Report(unittest.TestCase):
    def test_runs_become_median_and_spread(self):
        (entry,) = report.merge([line("a (ms)", value, budget="<= 3") for value in (5, 1, 2)])
        self.assertEqual((entry["ours"], entry["oursRuns"], entry["met"]), (2, [5, 1, 2], True))
        self.assertEqual(report.rows([entry])[1], ["a (ms)", "2", "1..5", "<= 3", "met"])

    def test_a_budget_is_held_at_its_limit_and_missed_beyond_it(self):
        for value, budget, met in ((3, "<= 3", True), (3.01, "<= 3", False), (90, ">= 90", True),
                                   (89.9, ">= 90", False), (1, "", None)):
            self.assertIs(report.is_met(value, budget), met, (value, budget))
        missed = report.merge([line("a", 4, budget="<= 3")])
        self.assertEqual(report.rows(missed)[1][-1], "MISSED")

    def test_what_is_missed_is_said_at_the_end(self):
        entries = report.merge([line("a (ms)", 3, budget="<= 3"), line("b", 4, budget="<= 3", scenario="t"),
                                line("c", 5), line("d", 1, who="peer", budget=">= 2")])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            report.print_budgets(entries)
            report.print_budgets(entries[:1])
        self.assertEqual(out.getvalue().splitlines(), ["budgets: 1 met, 1 missed:", "    t: b: 4, budget <= 3",
                                                       "budgets: 1 met, 0 missed"])

    def test_the_peer_has_columns_of_its_own_and_a_ratio(self):
        entries = report.merge(
            [line("a", 1), line("a", 4, who="peer"), line("b", 2), line("c", 5, who="peer")]
        )
        self.assertEqual([entry["ratio"] for entry in entries], [0.25, None, None])
        table = report.rows(entries)
        self.assertEqual(table[0], ["measured", "value", "peer", "ratio", "budget"])
        self.assertEqual(table[1:], [["a", "1", "4", "0.25", ""], ["b", "2", "", "", ""],
                                     ["c", "-", "5", "-", ""]])

    def test_a_peer_of_nothing_is_no_division(self):
        (entry,) = report.merge([line("a", 1), line("a", 0, who="peer")])
        self.assertIsNone(entry["ratio"])
        self.assertEqual(report.rows([entry])[1][2:4], ["0", "-"])

    def test_scenarios_do_not_mix_and_keep_their_order(self):
        self.assertEqual([e["at"] for e in report.merge([line("a", 1, at="1"), line("a", 2, at="2"), line("b", 3)])],
                         ["2", None])
        entries = report.merge([line("b", 1, scenario="x"), line("a", 2, scenario="x"),
                                line("b", 3, scenario="y")])
        self.assertEqual([(e["scenario"], e["what"], e["ours"]) for e in entries],
                         [("x", "b", 1), ("x", "a", 2), ("y", "b", 3)])

    def test_the_document_has_everything_and_the_machine(self):
        with tempfile.TemporaryDirectory() as folder:
            figures, out = pathlib.Path(folder, "figures.jsonl"), pathlib.Path(folder, "out.json")
            figures.write_text(json.dumps(line("2 x (KiB)", 7, series="x (KiB)", x=2)) + "\n")
            with unittest.mock.patch.object(
                sys, "argv", ["report.py", "--figures", str(figures), "--json", str(out)]
            ):
                report.main()
            written = json.loads(out.read_text())
        self.assertGreaterEqual(written["machine"]["processors"], 1)
        self.assertEqual([(f["series"], f["x"], f["ours"]) for f in written["figures"]], [("x (KiB)", 2, 7)])


class Growth(unittest.TestCase):
    def series(self, lines):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write("".join(json.dumps(entry) + "\n" for entry in lines))
            file.flush()
            return growth.series_of(file.name)

    def test_points_are_medians_in_order(self):
        points = [(10, 5), (1, 2), (10, 7), (10, 6)]
        series = self.series([line("w", y, series="n (KiB)", x=x) for x, y in points] + [line("w", 3)])
        self.assertEqual(series, {("s", "ours", "n (KiB)"): [(1, 2), (10, 6)]})

    def test_a_line_has_its_slope_and_no_distance(self):
        start, slope, far = growth.fit([(0, 4), (10, 9), (20, 14)])
        self.assertAlmostEqual(start, 4)
        self.assertAlmostEqual(slope, 0.5)
        self.assertAlmostEqual(far, 0)

    def test_what_grows_faster_is_no_straight_line(self):
        _, _, far = growth.fit([(n, n**1.5) for n in (0, 1000, 10000, 20000, 50000, 100000)])
        self.assertGreater(far, growth.STRAIGHT_PERCENT)

    def test_a_level_line_is_straight(self):
        self.assertEqual(growth.fit([(0, 5), (1, 5), (2, 5)])[1:], (0, 0))

    def test_two_points_prove_nothing(self):
        series = self.series([line("w", x, series="n (KiB)", x=x) for x in (1, 2)])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            growth.print_lines(series, "s", "ours")
        self.assertEqual(out.getvalue(), "")

    def test_lines_are_figures_with_a_budget(self):
        series = self.series([line("w", 2 * x, series="memory (KiB)", x=x) for x in (1, 2, 3)])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            growth.print_lines(series, "s", "ours")
        self.assertEqual(out.getvalue().splitlines(),
                         ["memory: slope of the line (KiB each)|2",
                          "memory: farthest from the line (% of the span)|0.00|<= 5"])

    def test_the_drawing_has_each_point_and_the_line(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            growth.draw_all({("s", "ours", "RssAnon, settled (KiB)"): [(0, 1), (5, 6), (9, 10)],
                             ("s", "peer", "theirs (KiB)"): [(0, 1), (5, 6), (9, 10)]}, folder)
            (file,) = pathlib.Path(folder).iterdir()
            text = file.read_text()
        self.assertEqual(file.name, "rssanon-settled.svg")
        self.assertEqual((text.count("<circle"), text.count("#36c")), (3, 1))


def task(uid, phase=None, reason=None):
    status = {name: value for name, value in (("phase", phase), ("reason", reason)) if value}
    return {"metadata": {"uid": uid}, "status": status}


def request(name, begun, ended, verb="patch", user="task-controller", resource="tasks"):
    return json.dumps({"verb": verb, "objectRef": {"resource": resource, "name": name},
                       "user": {"username": tasks.OPERATOR + user},
                       "requestReceivedTimestamp": f"1970-01-01T00:00:{begun:09.6f}Z",
                       "stageTimestamp": f"1970-01-01T00:00:{ended:09.6f}Z"})


class Tasks(unittest.TestCase):
    def test_a_state_is_a_phase_or_a_reason_or_anything(self):
        self.assertTrue(tasks.is_in_state(task("a", phase="running"), "running"))
        self.assertTrue(tasks.is_in_state(task("a", phase="pending", reason="Suspended"), "Suspended"))
        self.assertFalse(tasks.is_in_state(task("a"), "running"))
        self.assertTrue(tasks.is_in_state(task("a"), ""))

    def test_events_are_followed(self):
        uids = {"a"}
        for kind, item in (("ADDED", task("b", phase="running")), ("MODIFIED", task("a", phase="completed")),
                           ("ADDED", task("c", phase="running")), ("DELETED", task("c", phase="running"))):
            self.assertTrue(tasks.apply_event(uids, {"type": kind, "object": item}, "running"))
        self.assertEqual(uids, {"b"})
        self.assertFalse(tasks.apply_event(uids, {"type": "ERROR", "object": {"code": 410}}, "running"))

    def test_the_api_servers_own_time_is_that_of_answers_before_the_start(self):
        log = [
            request("a", 1, 1.25),
            request("a", 2, 2.5, verb="get"),
            request("a", 2.9, 3.1),  # of the write after the start
            request("a", 0, 0.5, verb="create"),
            request("a", 1, 2, resource="events"),
            request("b", 1, 2),
            request("a", 1, 2).replace(tasks.OPERATOR, "somebody:"),
            json.dumps({"verb": "list", "user": {"username": tasks.OPERATOR}}),
        ]
        self.assertEqual(tasks.own_times(log, {"a": (0.75, 3.0)}), {"a": 0.75})

    def test_what_the_api_server_did_before_the_create_was_answered_is_not_taken_off(self):
        log = [request("a", 1, 1.25), request("a", 1.5, 2), request("a", 2, 2.5)]
        self.assertEqual(tasks.own_times(log, {"a": (1.75, 3.0)}), {"a": 0.75})

    def test_percentiles_do_not_leave_the_list(self):
        values = [3, 1, 2]
        self.assertEqual([tasks.percentile(values, part) for part in (0, 0.5, 0.99, 1)], [1, 2, 3, 3])

    def test_only_what_the_webhook_has_seen_has_finalizers(self):
        options = types.SimpleNamespace(defaulted=False)
        self.assertEqual(tasks.metadata_of(options, "tasks", "a"), {"name": "a"})
        options.defaulted = True
        self.assertTrue(tasks.metadata_of(options, "tasks", "a")["finalizers"][0].endswith("/task-finalizer"))


class Settings(unittest.TestCase):
    def check(self, **variables):
        """What is said about them; nothing if they are right."""
        script = 'die() { echo "$*"; exit 1; }; source "$0"; settings_check'
        run = subprocess.run(["bash", "-c", script, BENCH / "settings.sh"], env={"PATH": "/bin:/usr/bin", **variables},
                             capture_output=True, text=True, check=False)
        self.assertEqual((run.returncode != 0, run.stderr), (run.stdout != "", ""))
        return run.stdout.strip()

    def test_what_is_right_is_taken(self):
        self.assertEqual(self.check(BENCH_REPEATS="3", BENCH_OBJECTS="0 500 1000", BENCH_SIZES="100 10", BENCH_TASKS="",
                                    BENCH_PEER="bash -c x", BENCH_PEER_PATH="/validate", BENCH_STANDALONE="0"), "")

    def test_what_is_wrong_is_named_with_what_is_allowed(self):
        number, numbers = "must be a number of at least 1", "must be numbers of at least 1 with blanks between them"
        growing = "must be growing numbers with blanks between them"
        for name, value, allowed in (("REPEATS", "0", number), ("FAILOVERS", "ten", number), ("TASKS", "-1", number),
                                     ("SIZES", "100,1000", numbers), ("RATES", "0 100", numbers),
                                     ("OBJECTS", "0 500 500", growing), ("OBJECTS", "500 0", growing),
                                     ("STANDALONE", "many", growing)):
            self.assertEqual(self.check(**{f"BENCH_{name}": value}), f"BENCH_{name} is '{value}', {allowed}")

    def test_a_peer_that_is_not_there_is_found_before_anything_is_measured(self):
        self.assertEqual(self.check(BENCH_PEER="/nowhere/manager --kubeconfig KUBECONFIG"),
                         "BENCH_PEER begins with '/nowhere/manager', must begin with a program that can be run")

    def test_a_name_that_nobody_reads_is_refused(self):
        self.assertIn("BENCH_TASK is no variable", self.check(BENCH_TASK="5"))

    def test_each_variable_that_a_scenario_reads_is_known_and_documented(self):
        documented = (BENCH.parent / "docs" / "contributing" / "benchmarks.md").read_text()
        read = set()
        for file in [BENCH / "run.sh", *BENCH.glob("scenarios/*.sh")]:
            read |= set(re.findall(r"\$\{(BENCH_[A-Z_]+)", file.read_text()))
        for name in read - {"BENCH_PEER_PATH"}:
            self.assertIn(f"`{name}", documented)
        self.assertGreater(len(read), 20)
        for name in read:
            self.assertNotIn("is no variable", self.check(**{name: "1"}))


if __name__ == "__main__":
    unittest.main()
