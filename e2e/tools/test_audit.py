"""What audit.py lets pass and what it does not."""

import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import audit

HOME = "system"
TASKS = {"apiGroups": [audit.GROUP], "resources": ["tasks"], "verbs": ["get", "patch"]}


def role(name, *rules, kind="ClusterRole", **metadata):
    return {"kind": kind, "metadata": {"name": name, **metadata}, "rules": list(rules)}


def binding(name, *subjects, kind="ClusterRole", **metadata):
    return {"kind": f"{kind}Binding", "metadata": {"name": name, **metadata},
            "roleRef": {"kind": kind, "name": name}, "subjects": list(subjects)}


def account(name, namespace=HOME):
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def request(user, verb, resource, code=200, group=audit.GROUP, ns="team", name="", home=HOME, second=0, took=0):
    return {"user": {"username": f"system:serviceaccount:{home}:{user}"}, "verb": verb,
            "objectRef": {"apiGroup": group, "resource": resource, "namespace": ns, "name": name},
            "responseStatus": {"code": code},
            "requestReceivedTimestamp": f"2026-01-01T00:00:{second:02}.000000Z",
            "stageTimestamp": f"2026-01-01T00:00:{second + took:02}.000000Z"}


class Audit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.others = []
        self.granted = [role("tasks", TASKS), binding("tasks", account("task-controller"))]
        self.log = [request("task-controller", "get", "tasks"), request("task-controller", "patch", "tasks")]

    def write(self, folder, log):
        (folder / "rbac.json").write_text(json.dumps({"items": self.granted}))
        (folder / "audit.log").write_text("".join(json.dumps(line) + "\n" for line in log) + '{"cut off')

    def judge(self, *options, unused=None):
        """The problems that it finds."""
        self.write(self.folder, self.log)
        argv = ["audit.py", "--namespace", HOME, *options, str(self.folder), *map(str, self.others)]
        printed = io.StringIO()
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(printed), \
                mock.patch.object(audit, "EXPECTED_UNUSED", unused or {}):
            status = audit.main()
        problems = [line.split(": ", 1)[1] for line in printed.getvalue().splitlines()
                    if line.startswith("PROBLEM")]
        self.assertEqual(status, 1 if problems else 0)
        return problems

    def test_rights_that_are_all_used_are_fine(self):
        self.assertEqual(self.judge("--complete"), [])

    def test_right_that_nobody_used_is_found(self):
        del self.log[1]
        never = f"task-controller {audit.GROUP}/tasks patch"
        self.assertEqual(self.judge(), [])
        self.assertEqual(self.judge("--complete"), [f"granted and never used: {never}"])
        self.assertEqual(self.judge("--complete", unused={never: "a reason"}), [])

    def test_reason_for_what_is_not_granted_is_found(self):
        problems = self.judge("--complete", unused={"task-controller /pods delete": "once"})
        self.assertEqual(problems, ["on the list of unused rights, but not granted: task-controller /pods delete"])

    def test_use_of_one_name_is_no_use_of_another(self):
        self.granted[0]["rules"] = [dict(TASKS, verbs=["get"], resourceNames=["a", "b"])]
        self.log = [request("task-controller", "get", "tasks", name="a")]
        self.assertEqual(self.judge("--complete"),
                         [f"granted and never used: task-controller {audit.GROUP}/tasks get b"])

    def test_use_by_one_account_is_no_use_by_another(self):
        self.granted[1]["subjects"].append(account("proplet-controller"))
        self.assertEqual(len(self.judge("--complete")), 2)

    def test_wildcard_counts_as_unused(self):
        self.granted[0]["rules"].append({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]})
        self.assertEqual(self.judge("--complete"), ["granted and never used: task-controller */* *"])

    def test_right_to_any_kind_of_a_group_is_used_by_one_of_them(self):
        self.granted[0]["rules"] = [dict(TASKS, resources=["*"], verbs=["get", "patch"])]
        del self.log[1]
        self.assertEqual(self.judge("--complete"), [f"granted and never used: task-controller {audit.GROUP}/* patch"])

    def test_url_counts_as_right(self):
        self.granted[0]["rules"].append({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})
        self.assertEqual(self.judge("--complete"), ["granted and never used: task-controller //metrics get"])

    def test_right_of_all_accounts_of_the_namespace_is_found(self):
        group = {"kind": "Group", "name": f"system:serviceaccounts:{HOME}"}
        self.granted += [role("extra", dict(TASKS, verbs=["delete"])), binding("extra", group)]
        self.assertEqual(len(self.judge("--complete")), 1)

    def test_right_in_one_namespace_is_found(self):
        self.granted += [role("extra", dict(TASKS, verbs=["delete"]), kind="Role", namespace="team"),
                         binding("extra", account("task-controller"), kind="Role", namespace="team")]
        self.assertEqual(len(self.judge("--complete")), 1)

    def test_rights_of_others_do_not_matter(self):
        self.granted += [role("extra", dict(TASKS, verbs=["delete"])),
                         binding("extra", account("task-controller", "elsewhere"))]
        self.assertEqual(self.judge("--complete"), [])

    def test_refused_request_is_found_and_uses_no_right(self):
        self.log[1]["responseStatus"]["code"] = 403
        self.assertEqual(len(self.judge()), 1)
        self.assertEqual(len(self.judge("--complete")), 2)

    def test_refusal_of_a_starting_api_server_is_none(self):
        starts = self.folder / "apiserver-starts"
        starts.write_text(f"{audit.time_of('2026-01-01T00:00:00Z')}\n")
        self.log = [request("task-controller", "get", "tasks", code=403, second=50),
                    request("task-controller", "get", "tasks", second=51)]
        self.assertEqual(self.judge(), [])

    def test_refusal_beside_one_that_is_granted_later_is_of_a_starting_api_server(self):
        starts = self.folder / "apiserver-starts"
        starts.write_text(f"{audit.time_of('2026-01-01T00:00:00Z')}\n")
        self.log = [request("task-controller", "get", "tasks", second=3, took=4),
                    request("task-controller", "get", "tasks", code=403, second=5)]
        self.assertEqual(self.judge(), [])
        self.log.append(request("task-controller", "get", "tasks", code=403, second=8))
        self.assertEqual(len(self.judge()), 1)

    def test_refusal_of_what_was_granted_since_the_start_is_found(self):
        starts = self.folder / "apiserver-starts"
        starts.write_text(f"{audit.time_of('2026-01-01T00:00:00Z')}\n")
        self.log.append(request("task-controller", "get", "tasks", code=403, second=5))
        self.assertEqual(len(self.judge()), 1)

    def test_refusal_by_a_starting_api_server_of_what_is_never_granted_is_found(self):
        starts = self.folder / "apiserver-starts"
        starts.write_text(f"{audit.time_of('2026-01-01T00:00:00Z')}\n")
        self.log = [request("task-controller", "get", "tasks", code=403, second=5)]
        self.assertEqual(len(self.judge()), 1)

    def test_look_at_a_namespace_that_is_away_may_be_refused_but_no_write(self):
        absent = self.folder / "absent-namespaces"
        absent.write_text("late\n")
        self.log.append(request("task-controller", "list", "tasks", code=403, ns="late"))
        self.assertEqual(self.judge(), [])
        self.log.append(request("task-controller", "patch", "tasks", code=403, ns="late"))
        self.assertEqual(len(self.judge()), 1)

    def test_refusal_while_rights_were_taken_away_is_none_and_a_later_one_is_found(self):
        begin, end = (audit.time_of(f"2026-01-01T00:00:{second}Z") for second in ("02", "04"))
        (self.folder / "missing-rights").write_text(f"{begin} {end}\n")
        self.log += [request("task-controller", "patch", "tasks", code=403, second=second) for second in (3, 5)]
        self.assertEqual(self.judge(), [])
        later = int(4 + audit.RIGHTS_SEEN_S + 1)
        self.log.append(request("task-controller", "patch", "tasks", code=403, second=later))
        self.assertEqual(len(self.judge()), 1)

    def test_what_a_namespace_that_goes_refuses_is_no_matter_of_rights(self):
        self.log.append(request("task-controller", "patch", "tasks", code=403))
        self.log[-1]["responseStatus"]["message"] = ("unable to create new content in namespace late "
                                                     "because it is being terminated")
        self.assertEqual(self.judge(), [])
        self.log[-1]["responseStatus"]["message"] = "User cannot patch tasks"
        self.assertEqual(len(self.judge()), 1)

    def test_write_of_another_reconciler_is_found(self):
        self.granted[1]["subjects"].append(account("proplet-controller"))
        self.log.append(request("proplet-controller", "patch", "tasks"))
        self.assertEqual(self.judge(), [f"patch {audit.GROUP}/tasks came from 'proplet-controller'"])

    def test_account_without_rights_is_found(self):
        self.log.append(request("default", "get", "tasks"))
        self.assertEqual(len(self.judge()), 1)

    def test_log_without_us_is_found(self):
        self.log = [request("task-controller", "get", "tasks", home="elsewhere")]
        self.assertEqual(self.judge(), ["no request of any identity: wrong log?"])

    def test_what_several_api_servers_saw_counts_together(self):
        self.others = [self.folder / "other"]
        self.others[0].mkdir()
        self.write(self.others[0], self.log[:1])
        del self.log[0]
        self.assertEqual(self.judge("--complete"), [])

    def test_start_of_one_api_server_excuses_no_other(self):
        self.others = [self.folder / "other"]
        self.others[0].mkdir()
        self.write(self.others[0], self.log + [request("task-controller", "get", "tasks", code=403)])
        (self.folder / "apiserver-starts").write_text(f"{audit.time_of('2026-01-01T00:00:00Z')}\n")
        self.assertEqual(len(self.judge()), 1)


if __name__ == "__main__":
    unittest.main()
