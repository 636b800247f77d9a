#!/usr/bin/env python3
"""Says whether arms whose intervals are apart swap their order between runs.

For every chart and reference, and for every two runs, looks at all pairs of arms whose intervals do
not overlap in either run, and counts those that stand in one order in one run and in the other order
in the other. Needs Python 3.8 or later.

Example:
  for run in 1 2 3; do sqlitmus measure --full --group read --json --quiet > $run.json; done
  scripts/order-of-arms.py 1.json 2.json 3.json
"""

import itertools
import json
import sys


def intervals(run):
    """By reference: the interval of every arm's ratio to it."""
    found = {}
    for chart in run["charts"]:
        for row in chart["rows"]:
            for comparison in row["comparisons"]:
                interval = comparison["interval"]
                if comparison["cost"] == "acknowledged" and interval:
                    of_reference = found.setdefault(comparison["versus"], {})
                    of_reference[row["arm"]] = (interval["low"], interval["high"])
    return found


def order(one, other):
    """1 if one is above the other, -1 if below, 0 if they overlap."""
    return (one[0] > other[1]) - (other[0] > one[1])


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: order-of-arms.py RUN.json RUN.json ...")
    runs = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            runs.append(intervals(json.load(file)))
    apart = swapped = 0
    for first, second in itertools.combinations(runs, 2):
        for reference in sorted(set(first) & set(second)):
            of_first, of_second = first[reference], second[reference]
            for arms in itertools.combinations(sorted(set(of_first) & set(of_second)), 2):
                orders = [order(run[arms[0]], run[arms[1]]) for run in (of_first, of_second)]
                if all(orders):
                    apart += 1
                    if orders[0] != orders[1]:
                        swapped += 1
                        print(f"swapped, compared with {reference}: {arms[0]} and {arms[1]}")
    print(f"{apart} pairs of arms are apart in both of two runs; {swapped} of them swap their order")
    sys.exit(1 if swapped else 0)


if __name__ == "__main__":
    main()
