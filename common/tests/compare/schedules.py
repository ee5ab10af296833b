#!/usr/bin/env python3
"""Holds the times of schedules against other implementations.

croniter says which dates and times an expression means, zoneinfo which instants these are in a zone
of the database; the few lines of instants() are the rule of docs/how-to/schedules.md for clocks that jump.
Windows of machines are held against the definition in common/api/windows.h, minute by minute or day by day.
Expressions, zones and years are drawn at random from a seed that is printed.
"""

import argparse
import calendar
import datetime as dt
import os
import random
import subprocess
import sys
import zoneinfo

import croniter

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
# name, first value, last value, names
FIELDS = [
    ("minute", 0, 59, None),
    ("hour", 0, 23, None),
    ("day", 1, 31, None),
    ("month", 1, 12, MONTHS),
    ("weekday", 0, 7, DAYS),
]
MINUTE, HOUR, DAY, MONTH, WEEKDAY = range(5)
ALIASES = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"]
TIMES = 4
# Of the cases: windows of machines, which take a hundred times as long to compare.
WINDOWS_SHARE = 0.1
# Years whose offsets the database knows, and years that only its rules tell.
FIRST_YEAR, LAST_YEAR = 1972, 2095
MANY_CHANGES = ["Africa/Casablanca", "Africa/Cairo", "America/New_York", "America/Santiago",
                "Antarctica/Troll", "Asia/Gaza", "Australia/Lord_Howe", "Europe/Berlin",
                "Europe/Dublin", "Pacific/Apia", "Pacific/Chatham", "Asia/Tehran"]


def spell(rng, field, value):
    _, first, _, names = FIELDS[field]
    if names and value - first < len(names) and rng.random() < 0.3:
        name = names[value - first]
        return name.upper() if rng.random() < 0.3 else name
    return str(value)


def draw_element(rng, field):
    _, first, last, _ = FIELDS[field]
    kind = rng.random()
    begin = rng.randint(first, last)
    step = rng.randint(1, max(2, (last - first) // 2))
    if kind < 0.5:
        return spell(rng, field, begin)
    if kind < 0.75:
        end = rng.randint(begin, last)
        text = f"{spell(rng, field, begin)}-{spell(rng, field, end)}"
        return f"{text}/{step}" if rng.random() < 0.3 else text
    if kind < 0.85 and begin < 7:
        return f"{begin}/{step}"
    return f"*/{max(step, 2)}"


def draw_field(rng, field):
    if rng.random() < (0.25, 0.35, 0.5, 0.6, 0.5)[field]:
        return "*"
    return ",".join(draw_element(rng, field) for _ in range(rng.choice((1, 1, 1, 2, 3))))


def draw_expression(rng):
    if rng.random() < 0.03:
        return rng.choice(ALIASES)
    fields = [draw_field(rng, field) for field in range(5)]
    if rng.random() < 0.3:  # at the hours at which clocks are set
        fields[HOUR] = rng.choice(["0", "1", "2", "3", "1,2", "0-3", "23"])
    return " ".join(fields)


def draw_time(rng, zone):
    """Anywhere, or within a day or two hours of a change of the offset."""
    year = rng.randint(FIRST_YEAR, LAST_YEAR)
    at = calendar.timegm((year, 1, 1, 0, 0, 0)) + rng.randrange(365 * 86400)
    if rng.random() < 0.4:
        return at
    for day in range(0, 400):
        before, after = at + day * 86400, at + (day + 1) * 86400
        if offset(zone, before) != offset(zone, after):
            change = first_after(before, after, lambda t: offset(zone, t) != offset(zone, before))
            near = rng.choice((7200, 86400))
            return change + rng.randrange(-near, near)
    return at


def first_after(before, after, holds):
    """The first second at which it holds, which it does at after and not at before."""
    while after - before > 1:
        middle = (before + after) // 2
        if holds(middle):
            after = middle
        else:
            before = middle
    return after


def offset(zone, at):
    return dt.datetime.fromtimestamp(at, zone).utcoffset()


def values(text, field):
    """What a field allows, by the grammar of crontab(5)."""
    _, first, last, names = FIELDS[field]

    def number(word):
        word = word.lower()
        return first + names.index(word) if names and word in names else int(word)

    found = set()
    for element in text.split(","):
        body, _, step = element.partition("/")
        if body == "*":
            begin, end = first, 6 if field == WEEKDAY else last
        elif "-" in body:
            begin, end = map(number, body.split("-"))
        else:
            begin = end = number(body)
            if step:
                end = max(begin, 6 if field == WEEKDAY else last)
        found.update(range(begin, end + 1, int(step or 1)))
    return sorted({value % 7 for value in found} if field == WEEKDAY else found)


def written_for_croniter(expression):
    """croniter takes 5-5 and 6/2 in the last field for all values; a list of all values is * to it, and * leaves the choice
    between the two kinds of days to the other field; here only * itself does. A day that no month
    has is refused even where a day of the week is enough."""
    if expression.startswith("@"):
        return expression
    fields = []
    for field, text in enumerate(expression.split()):
        elements = []
        for element in text.split(","):
            allowed = values(element, field)
            elements.append(str(allowed[0]) if len(allowed) == 1 else element)
        fields.append("*" if "*" in elements else ",".join(elements))
    restricted = [field for field in (DAY, WEEKDAY) if fields[field] != "*"]
    if len(restricted) == 2 and (len(values(fields[DAY], DAY)) == 31 or
                                 len(values(fields[WEEKDAY], WEEKDAY)) == 7):
        fields[DAY] = fields[WEEKDAY] = "*"
    elif len(restricted) == 2 and not has_a_date(fields):
        fields[DAY] = "*"
    return " ".join(fields)


def has_a_date(fields):
    return any(calendar.monthrange(2000, month)[1] >= min(values(fields[DAY], DAY))
               for month in (range(1, 13) if fields[MONTH] == "*" else values(fields[MONTH], MONTH)))


def is_every_hour(expression):
    if expression.startswith("@"):
        return expression == "@hourly"
    return len(values(expression.split()[HOUR], HOUR)) == 24


def local(zone, at):
    return dt.datetime.fromtimestamp(at, zone).replace(tzinfo=None)


def instants(zone, wall, every_hour):
    first, second = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (0, 1))
    if local(zone, first) == wall:
        return sorted({first, second}) if every_hour else [first]
    if every_hour:
        return []
    return [first_after(second, first, lambda at: local(zone, at) >= wall)]  # the jump


def expected(expression, zone, after, count):
    """The next times; None: there is none."""
    every_hour = is_every_hour(expression)
    near = [offset(zone, after + hours * 3600) for hours in range(-26, 27)]
    start = local(zone, after) - (max(near) - min(near)) - dt.timedelta(minutes=1)
    it = croniter.croniter(written_for_croniter(expression), start, max_years_between_matches=50)
    found = set()
    while True:
        try:
            wall = it.get_next(dt.datetime)
        except croniter.CroniterBadDateError:
            return None
        new = instants(zone, wall, every_hour)
        found.update(at for at in new if at > after)
        if len(found) >= count and new and new[0] > sorted(found)[count - 1]:
            return sorted(found)[:count]


# ---- windows ----

WEEK = "mon tue wed thu fri sat sun".split()
HORIZON = 35 * 86400


def draw_list(rng, names):
    parts = []
    for _ in range(rng.choice((1, 1, 2))):
        first, last = rng.choice(names), rng.choice(names)
        parts.append(first if rng.random() < 0.5 else f"{first}-{last}")
    return ",".join(parts)


def draw_minute(rng):
    """Often at the hours at which clocks are set."""
    hour = rng.choice((0, 1, 2, 3, 23)) if rng.random() < 0.4 else rng.randrange(24)
    return f"{hour:02}:{rng.choice((0, 0, 15, 30, 45, 59)):02}"


def draw_windows(rng):
    if rng.random() < 0.4:
        return f"grid {draw_list(rng, WEEK)}|{draw_list(rng, [str(hour) for hour in range(24)])}"
    items = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        day = f"{rng.choice(WEEK)} " if rng.random() < 0.3 else ""
        items.append(f"{draw_list(rng, WEEK)}|{draw_minute(rng)}|{day}{draw_minute(rng)}")
    return "windows " + ";".join(items)


def listed(text, names):
    """What a list of values and ranges in a circle holds, as indexes."""
    found = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = names.index(first), names.index(last or first)
        found.update((begin + i) % len(names) for i in range((end - begin) % len(names) + 1))
    return found


def grid_changes(text, zone, begin, end):
    """The state at begin, and each second until end at which it differs from the one before."""
    days, _, hours = text.partition("|")
    days, hours = listed(days, WEEK), listed(hours, [str(hour) for hour in range(24)])

    def is_open(at):
        wall = local(zone, at)
        return wall.weekday() in days and wall.hour in hours

    state, at, changes = is_open(begin), begin, []
    first = state
    while at < end:
        # Quarters of an hour, and minutes where the clock is set.
        step = 900 - at % 900
        if offset(zone, at) != offset(zone, at + step):
            step = 60 - at % 60
        if is_open(at + step) != state:
            state = not state
            changes.append(first_after(at, at + step, lambda t: is_open(t) == state))
        at += step
    return first, changes


def windows_changes(text, zone, begin, end):
    spans = []
    first_day = local(zone, begin).date() - dt.timedelta(days=9)
    for number in range((end - begin) // 86400 + 20):
        day = first_day + dt.timedelta(days=number)
        for item in text.split(";"):
            days, start, until = item.split("|")
            if day.weekday() not in listed(days, WEEK):
                continue
            last_day, _, stop = until.rpartition(" ")
            step = 7 if last_day else 1
            ahead = (WEEK.index(last_day) - day.weekday()) % 7 if last_day else 0
            if ahead == 0 and stop <= start:
                ahead = step
            ends = day + dt.timedelta(days=ahead)
            span = tuple(instants(zone, dt.datetime.combine(date, dt.time.fromisoformat(clock)), False)[0]
                         for date, clock in ((day, start), (ends, stop)))
            if span[0] < span[1]:
                spans.append(span)
    merged = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], stop)
        else:
            merged.append([start, stop])
    is_open = any(start <= begin < stop for start, stop in merged)
    return is_open, [at for span in merged for at in span if begin < at <= end]


def expected_windows(expression, zone, at):
    kind, _, text = expression.partition(" ")
    changes_of = grid_changes if kind == "grid" else windows_changes
    begin = at - HORIZON - 86400
    state, changes = changes_of(text, zone, begin, at + HORIZON + 86400)
    past, future = [c for c in changes if c <= at], [c for c in changes if c > at]
    is_open = state != (len(past) % 2 == 1)
    after = str(future[0]) if future and future[0] - at <= HORIZON else "-"
    before = str(past[-1]) if past and at - past[-1] <= HORIZON else "-"
    return f"{int(is_open)} {after} {before}"


def draw(rng, count):
    names = sorted(zoneinfo.available_timezones() - {"localtime", "Factory"})
    cases = []
    while len(cases) < count:
        name = "UTC" if rng.random() < 0.3 else rng.choice(names)
        if name != "UTC" and rng.random() < 0.5:
            name = rng.choice(MANY_CHANGES)
        expression = draw_windows(rng) if rng.random() < WINDOWS_SHARE else draw_expression(rng)
        cases.append((expression, name, draw_time(rng, zoneinfo.ZoneInfo(name))))
    return cases


def ask(program, cases):
    questions = "".join(f"{expression}\t{zone}\t{after}\t{TIMES}\n" for expression, zone, after in cases)
    answer = subprocess.run([program], input=questions, capture_output=True, text=True, check=True)
    return answer.stdout.splitlines()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    cases = draw(rng, arguments.count)
    differences = 0
    for case, ours in zip(cases, ask(arguments.program, cases), strict=True):
        expression, name, after = case
        if expression.startswith(("grid ", "windows ")):
            theirs = expected_windows(expression, zoneinfo.ZoneInfo(name), after)
            if ours != theirs:
                differences += 1
                print(f"different: {case}\n  here  {ours}\n  other {theirs}")
            continue
        times = expected(expression, zoneinfo.ZoneInfo(name), after, TIMES)
        if times is None and ours.startswith("refused: never comes"):
            continue
        theirs = " ".join(map(str, times or []))
        if ours != theirs:
            differences += 1
            print(f"different: {case}\n  here  {ours}\n  other {theirs}")
    print(f"schedules: {len(cases)} comparisons, {differences} differences, seed {arguments.seed}")
    if "TEST_TALLY" in os.environ:
        with open(os.environ["TEST_TALLY"], "a", encoding="utf-8") as tally:
            tally.write(f"schedules {len(cases) - differences} {differences}\n")
    sys.exit(differences > 0)


if __name__ == "__main__":
    main()
