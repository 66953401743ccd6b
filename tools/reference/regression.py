#!/usr/bin/env python3
"""The joint posterior of a regression, calculated a second time with nothing of Parley.

    regression.py DIR SPEC > reference.csv

DIR holds the tables of a data set by id: subjects.csv with the outcome, and every other
*.csv with features. SPEC is a file of JSON: outcome; levels (two, of a logistic regression;
left out for a linear one); numbers; categories (feature to its levels). Numbers are scaled
by mean and standard deviation, categories coded against their most frequent level, and a
missing cell has no effect. Weights have the prior N(0, 6.25), the intercept N(0, 100); of a
linear regression in units of the outcome's variance (the intercept's: and of the square of
its mean, over 100), and its noise is estimated.

The optimum is the fixed point of Opper and Archambeau (2009), by Newton's steps with
expectations from the trapezoid rule over ±8 standard deviations. Written are, for every
weight of scaled columns, its name, mean and the lower triangle of the covariance.
"""
import csv, glob, json, math, os, sys

GRID = [i / 4 for i in range(-32, 33)]
MASS = [math.exp(-z * z / 2) for z in GRID]
MASS = [m / sum(MASS) for m in MASS]


def read(folder, spec):
    rows = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.csv"))):
        with open(path, newline="") as f:
            for r in csv.DictReader(f):
                rows.setdefault(r["id"], {}).update(r)
    return [rows[i] for i in sorted(rows) if rows[i].get(spec["outcome"])]


def moments(values):
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((x - mean) ** 2 for x in values) / len(values)


def design(rows, spec):
    """Sparse rows of the design matrix, and the names of its columns."""
    x, names = [[] for _ in rows], []
    for name in spec["order"]:
        if name in spec["numbers"]:
            mean, var = moments([float(r[name]) for r in rows if r[name] != ""])
            for entries, r in zip(x, rows):
                if r[name] != "":
                    entries.append((len(names), (float(r[name]) - mean) / math.sqrt(var)))
            names.append(name)
            continue
        levels = spec["categories"][name]
        count = [sum(r[name] == v for r in rows) for v in levels]
        reference = levels[count.index(max(count))]
        place = {}
        for v in levels:
            if v != reference:
                place[v] = len(names)
                names.append(name + "=" + v)
        for entries, r in zip(x, rows):
            if r[name] in place:
                entries.append((place[r[name]], 1.0))
    for entries in x:
        entries.append((len(names), 1.0))
    return x, names + ["intercept"]


def invert(a):
    """The inverse of a positive definite matrix, by Cholesky's factor."""
    n = len(a)
    low = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            s = a[i][j] - sum(map(float.__mul__, low[i][:j], low[j][:j]))
            low[i][j] = math.sqrt(s) if i == j else s / low[j][j]
    inv = [[0.0] * n for _ in range(n)]  # of the factor
    for j in range(n):
        for i in range(j, n):
            s = float(i == j) - sum(low[i][k] * inv[k][j] for k in range(j, i))
            inv[i][j] = s / low[i][i]
    return [[sum(inv[k][i] * inv[k][j] for k in range(max(i, j), n)) for j in range(n)] for i in range(n)]


def fit(x, y, d, logistic, prior):
    m, s = [0.0] * d, None
    noise = moments(y)[1]
    for step in range(100):
        g, h, squares = [-m[j] / prior[j] for j in range(d)], [[0.0] * d for _ in range(d)], 0.0
        for entries, t in zip(x, y):
            a = sum(v * m[j] for j, v in entries)
            c = max(sum(v * w * s[j][k] for j, v in entries for k, w in entries), 0.0) if s else 0.0
            if logistic:
                p, q, sd = 0.0, 0.0, math.sqrt(c)
                for z, mass in zip(GRID, MASS) if s else ((0.0, 1.0),):
                    e = 1 / (1 + math.exp(-(a + sd * z)))
                    p, q = p + mass * e, q + mass * e * (1 - e)
                first, second = t - p, q
            else:
                first, second = (t - a) / noise, 1 / noise
                squares += (t - a) ** 2 + c
            for j, v in entries:
                g[j] += first * v
                row = h[j]
                for k, w in entries:
                    row[k] += second * v * w
        for j in range(d):
            h[j][j] += 1 / prior[j]
        s = invert(h)
        move = [sum(map(float.__mul__, s[j], g)) for j in range(d)]
        m = [a + b for a, b in zip(m, move)]
        off = max(abs(b) / math.sqrt(s[j][j]) for j, b in enumerate(move))
        if not logistic:
            off = max(off, abs(math.log(squares / len(y) / noise)))
            noise = squares / len(y)
        print(f"step {step + 1}: {off:.3g} standard deviations", file=sys.stderr)
        if off < 1e-7 and step > 0:
            return m, s
    sys.exit("not converged")


def main():
    folder, spec = sys.argv[1], json.load(open(sys.argv[2]))
    rows = read(folder, spec)
    x, names = design(rows, spec)
    logistic = "levels" in spec
    y = [float(r[spec["outcome"]] == spec["levels"][1]) if logistic else float(r[spec["outcome"]]) for r in rows]
    mean, var = moments(y)
    unit = 1.0 if logistic else var + mean * mean / 100
    m, s = fit(x, y, len(names), logistic, [6.25 * unit] * (len(names) - 1) + [100 * unit])
    out = csv.writer(sys.stdout, lineterminator="\n")
    for i, name in enumerate(names):
        out.writerow([name, repr(m[i])] + [repr(s[i][j]) for j in range(i + 1)])


main()
