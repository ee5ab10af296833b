"""How memory and processor time grow with the number of objects: fits a line to each series of
points that scenarios measured, says how far the points are from it, and draws them as SVG.

A series is a unit in brackets behind a name, "RssAnon, settled (KiB)"; its points are figures with
"series" and "x". Without --svg the lines `what|value|budget` of one scenario are printed.
"""

import argparse
import json
import pathlib
import re
import statistics

# Of the span between the smallest and the largest point: n^1.5 at the sizes of `objects` is at 9, n^2 at 16.
STRAIGHT_PERCENT = 5
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 80, 20, 40, 50


def series_of(path):
    """Medians of repeated runs: {(scenario, who, series): [(x, y), ...]}, by x."""
    values = {}
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "series" in line:
                key = (line["scenario"], line["who"], line["series"])
                values.setdefault(key, {}).setdefault(line["x"], []).append(line["value"])
    return {
        key: [(x, statistics.median(by_x[x])) for x in sorted(by_x)] for key, by_x in values.items()
    }


def parts_of(name):
    return re.fullmatch(r"(.*?) \(([^)]*)\)", name).groups()


def fit(points):
    """Least squares: start, slope, and the largest distance in percent of the span."""
    line = statistics.linear_regression(*zip(*points))
    span = max(y for _, y in points) - min(y for _, y in points)
    far = max(abs(y - line.intercept - line.slope * x) for x, y in points)
    return line.intercept, line.slope, 100 * far / span if span else 0


def is_fit_for_a_line(points):
    """Two points are always on one."""
    return len(points) >= 3


def print_lines(series, scenario, who):
    for (of, whose, name), points in series.items():
        if (of, whose) != (scenario, who) or not is_fit_for_a_line(points):
            continue
        _, slope, deviation = fit(points)
        what, unit = parts_of(name)
        print(f"{what}: slope of the line ({unit} each)|{slope:.4g}")
        print(f"{what}: farthest from the line (% of the span)|{deviation:.2f}|<= {STRAIGHT_PERCENT}")


def ticks(most):
    """Four or so round numbers up to the largest."""
    step = 10 ** max(0, len(str(int(most))) - 1)
    while most / step < 4:
        step /= 2
    return [step * i for i in range(int(most / step) + 1)]


def text_of(value):
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def draw(title, unit, points):
    most_x, most_y = max(x for x, _ in points) or 1, max(y for _, y in points) or 1
    start, slope, deviation = fit(points)

    def at(x, y):
        across = LEFT + x / most_x * (WIDTH - LEFT - RIGHT)
        return across, HEIGHT - BOTTOM - y / most_y * (HEIGHT - TOP - BOTTOM)

    def text(x, y, anchor, words):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(LEFT, TOP / 2, "start", f"{title} ({unit})"),
    ]
    for x in ticks(most_x):
        across, bottom = at(x, 0)
        parts.append(text(across, bottom + 18, "middle", text_of(x)))
    for y in ticks(most_y):
        left, height = at(0, y)
        parts.append(
            f'<line x1="{left}" y1="{height:.1f}" x2="{WIDTH - RIGHT}" y2="{height:.1f}" stroke="#ddd"/>'
        )
        parts.append(text(left - 6, height + 4, "end", text_of(y)))
    (x1, y1), (x2, y2) = at(0, start), at(most_x, start + slope * most_x)
    parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#36c"/>')
    for x, y in points:
        across, height = at(x, y)
        parts.append(f'<circle cx="{across:.1f}" cy="{height:.1f}" r="4" fill="#c33"/>')
    words = f"{start:.4g} + {slope:.4g} x, farthest {deviation:.1f} % of the span"
    parts.append(text(WIDTH - RIGHT, HEIGHT - 12, "end", words))
    return "\n".join([*parts, "</svg>", ""])


def draw_all(series, folder):
    folder = pathlib.Path(folder)
    for (_, who, name), points in series.items():
        if who != "ours" or not is_fit_for_a_line(points):
            continue
        what, unit = parts_of(name)
        file = re.sub(r"[^a-z0-9]+", "-", what.lower()).strip("-") + ".svg"
        (folder / file).write_text(draw(what, unit, points), encoding="utf-8")
        print(f"drawn: {file}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", required=True, metavar="FILE", help="lines of JSON")
    parser.add_argument("--scenario", help="print how straight the lines of this one are")
    parser.add_argument("--who", default="ours", choices=("ours", "peer"))
    parser.add_argument("--svg", metavar="FOLDER", help="draw all of ours there")
    options = parser.parse_args()
    series = series_of(options.figures)
    if options.svg:
        draw_all(series, options.svg)
    else:
        print_lines(series, options.scenario, options.who)


if __name__ == "__main__":
    main()
