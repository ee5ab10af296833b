#!/usr/bin/env python3
"""What a chaos run does, decided by its seed alone: which faults when, and which Tasks.

    plan.py --seed N --duration S faults    one line `AT NUMBER begin|end KIND ARGUMENT...` each, in order
    plan.py --seed N --duration S tasks     one JSON object a Task, in order

Whom a fault meets where its kind says `leader` or `standby` is found out when it begins.
"""

import argparse
import json
import random
from dataclasses import asdict, dataclass, field

# Seconds without faults at the beginning, so that Tasks are under way, and at the end.
LEAD_IN, LEAD_OUT = 3.0, 4.0
SECONDS_PER_FAULT = 30
LEAST_FAULTS = 17
SECONDS_PER_TASK = 0.9
LEAST_TASKS = 120
REFERENCE_EVERY = 5
DAY_S = 24 * 60 * 60
# Between the end of a fault and the beginning of the next one on the same part.
PAUSE = 1.0


@dataclass
class Kind:
    """A sort of fault. Two on the same `part` never overlap; `span` is how long one lasts, seconds."""

    name: str
    part: str
    span: tuple
    arguments: tuple = ()  # of each, one is chosen
    is_core: bool = False  # part of every run, however short


HOW_CUT = ("freeze", "refuse")
GROUPS = ("north", "south")
KINDS = (
    Kind("kill-leader", "replica", (0, 3), is_core=True),
    Kind("kill-standby", "replica", (0, 3)),
    Kind("pause-leader", "replica", (8, 14), is_core=True),  # longer than the lease
    Kind("pause-standby", "replica", (8, 14)),
    Kind("kill-broker", "broker", (0, 3), is_core=True),
    Kind("kill-apiserver", "apiserver", (0, 3), is_core=True),
    Kind("kill-registry", "registry", (4, 10), is_core=True),
    # Results come that cannot be written, and then whoever holds them dies.
    Kind("kill-apiserver-then-leader", "apiserver", (2, 4), is_core=True),
    Kind("cut-controller-broker", "leader-broker", (3, 15), (HOW_CUT,), is_core=True),
    Kind("cut-controller-apiserver", "leader-apiserver", (9, 14), (HOW_CUT,), is_core=True),
    Kind("cut-devices-broker", "devices", (2, 12), (HOW_CUT, GROUPS)),
    Kind("reset-connections", "everything", (0, 0)),
    Kind("slow-apiserver", "answers", (4, 10), ((200, 600, 1500),)),
    Kind("slow-broker", "broker-answers", (4, 10), ((200, 600, 1500),)),
    Kind("too-many-requests", "answers", (3, 8), ((429,), (30, 70, 100))),
    Kind("server-errors", "answers", (3, 8), ((500, 503, 504), (30, 70, 100)), is_core=True),
    Kind("lost-answers", "answers", (3, 8), ((20, 50),), is_core=True),
    # These need the API server at their beginning and at their end.
    Kind("missing-rights", "apiserver", (20, 80), (("task-controller", "all"),)),
    Kind("delete-federatedjob", "apiserver", (6, 15), is_core=True),
    Kind("close-proplets", "apiserver", (6, 10), (("edit", "time"), GROUPS), is_core=True),
    Kind("kill-switch", "apiserver", (2, 6), (GROUPS,), is_core=True),
    Kind("reclaim", "apiserver", (3, 8), (("annotation", "message"), GROUPS), is_core=True),
    Kind("retained-messages", "broker", (2, 5), is_core=True),
    Kind("huge-messages", "broker", (2, 5), is_core=True),
    Kind("step-leader-clock", "clock", (5, 20), (("forwards", "backwards"),), is_core=True),
)


@dataclass
class Fault:
    at: float
    number: int
    kind: str
    end: float
    arguments: list


@dataclass
class PlannedTask:
    """`outcome`: completed, or failed-REASON, or follows: as those it depends on let it."""

    name: str
    at: float
    naps: int  # of 20 ms
    value: str
    outcome: str = "completed"
    after: list = field(default_factory=list)
    deadline: int | None = None
    ttl: int | None = None
    saves: bool = False  # hands over checkpoints
    by_reference: bool = False  # its module comes from the registry
    delete_at: float | None = None


def fault_count(duration):
    """60 in half an hour, and so each kind twice at least."""
    return max(LEAST_FAULTS, int(duration // SECONDS_PER_FAULT))


def task_count(duration):
    return max(LEAST_TASKS, round(duration / SECONDS_PER_TASK))


def bag_of_kinds(chance, count, without=()):
    """Every kind once, in any order but those that belong to every run first, and again.

    So no kind is ahead of another by more than one.
    """
    all_kinds = [kind for kind in KINDS if kind.name not in without]
    kinds = []
    while len(kinds) < count:
        bag = chance.sample(all_kinds, len(all_kinds))
        kinds += bag if kinds else sorted(bag, key=lambda kind: not kind.is_core)
    return kinds[:count]


def plan_faults(seed, duration, count=None, without=()):
    chance = random.Random(f"faults {seed}")
    count = count or fault_count(duration)
    slot = max(0.1, duration - LEAD_IN - LEAD_OUT) / count
    faults, is_free_at = [], {}
    for number, kind in enumerate(bag_of_kinds(chance, count, without), 1):
        at = LEAD_IN + (number - 1 + chance.random() * 0.8) * slot
        at = max(at, is_free_at.get(kind.part, 0))
        end = at + chance.uniform(*kind.span)
        is_free_at[kind.part] = end + PAUSE
        arguments = [chance.choice(choices) for choices in kind.arguments]
        faults.append(Fault(round(at, 1), number, kind.name, round(end, 1), arguments))
    return faults


def fault_lines(faults):
    steps = []
    for fault in faults:
        what = [fault.kind, *map(str, fault.arguments)]
        steps.append((fault.at, fault.number, 0, ["begin", *what]))
        steps.append((fault.end, fault.number, 1, ["end", *what]))
    return [" ".join([f"{at:.1f}", str(number), *words]) for at, number, _, words in sorted(steps)]


# Sorts of Tasks, and how many of a hundred.
SORTS = {"plain": 66, "follower": 10, "long": 7, "saver": 6, "deleted": 5, "wrong": 3, "late": 3}


def plan_tasks(seed, duration, count=None):
    chance = random.Random(f"tasks {seed}")
    count = count or task_count(duration)
    sorts = chance.choices(list(SORTS), list(SORTS.values()), k=count)
    times = sorted(chance.uniform(0, max(1.0, duration - LEAD_OUT)) for _ in sorts)
    tasks = []
    for number, (sort, at) in enumerate(zip(sorts, times), 1):
        task = PlannedTask(f"task-{number}", round(at, 1), chance.randint(5, 200), str(number))
        MAKERS[sort](chance, task, tasks)
        task.by_reference = sort == "plain" and number % REFERENCE_EVERY == 0
        tasks.append(task)
    return tasks


def make_follower(chance, task, earlier):
    """It may name one that fails: then it is skipped."""
    candidates = [other.name for other in earlier[-40:] if other.delete_at is None]
    task.after = chance.sample(candidates, min(len(candidates), chance.randint(1, 3)))
    task.outcome = "follows"


def make_long(chance, task, _earlier):
    """Neither time passes in a run; both have passed by a clock that is a day ahead."""
    task.naps, task.deadline, task.ttl = chance.randint(500, 1500), DAY_S // 2, DAY_S // 2


def make_saver(chance, task, _earlier):
    """Two attempts, with two checkpoints each at least."""
    task.naps, task.saves = chance.randint(1100, 1600), True


def make_deleted(chance, task, _earlier):
    """Before it starts, while it runs or after it: as it comes."""
    task.delete_at = round(task.at + chance.uniform(0, 6), 1)


def make_wrong(_chance, task, _earlier):
    task.value, task.outcome = "no-number", "failed-DeviceError"


def make_late(chance, task, _earlier):
    task.naps, task.deadline, task.outcome = 15000, chance.randint(2, 6), "failed-DeadlineExceeded"


MAKERS = {
    "plain": lambda *_: None,
    "follower": make_follower,
    "long": make_long,
    "saver": make_saver,
    "deleted": make_deleted,
    "wrong": make_wrong,
    "late": make_late,
}


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--duration", type=int, required=True, metavar="SECONDS")
    parser.add_argument("--faults", type=int, metavar="N", help="instead of one every 30 s, 16 at least")
    parser.add_argument("--tasks", type=int, metavar="N", help="instead of ten in 9 s, 120 at least")
    parser.add_argument("--without", action="append", default=[], metavar="KIND",
                        choices=[kind.name for kind in KINDS], help="no fault of this kind")
    parser.add_argument("what", choices=("faults", "tasks"))
    options = parser.parse_args()
    for name in ("duration", "faults", "tasks"):
        value = getattr(options, name)
        if value is not None and not 1 <= value <= 86400:
            parser.error(f"{name} is {value}, it must be between 1 and 86400")
    return options


def main():
    options = parse_arguments()
    if options.what == "faults":
        faults = plan_faults(options.seed, options.duration, options.faults, options.without)
        print("\n".join(fault_lines(faults)))
        return
    for task in plan_tasks(options.seed, options.duration, options.tasks):
        print(json.dumps(asdict(task)))


if __name__ == "__main__":
    main()
