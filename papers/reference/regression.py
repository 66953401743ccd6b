#!/usr/bin/env python3
"""The posterior of a regression, calculated a second time with nothing of Parley.

    regression.py DATA SPEC [NAME] > reference.csv

DATA is a table (.csv or .csv.gz), or a directory of tables that are joined by their column id.
SPEC is a file of JSON that describes a regression, or with NAME a list of such: outcome;
levels of the outcome, two of a logistic regression, more of a softmax; count, true of a
Poisson regression; event, levels and cuts of a time until an event; none of these of a linear
regression; least, below which a row's outcome is left out, as are rows without one; features;
and the levels of those that are categories.

Numbers are scaled by mean and standard deviation (/ n) of subjects, categories coded against
their most frequent level, and a missing cell has no effect. Weights have the prior N(0, 6.25),
the intercept and those of periods N(0, 100); of a linear regression in units of the outcome's
variance, the intercept's about its mean, and its noise is estimated. A time is seen through periods that end
at the cuts: one without an event counts in the last if it reaches its middle.

Calculated are the mode of the posterior and its inverse information by Newton's steps, and of a linear
regression the noise that goes with them; of a softmax, with weights for each class, both less their mean over
classes. Written are, for every weight of scaled columns, its name, mean and the
lower triangle of the covariance; of a softmax class by class.
"""
import csv, glob, gzip, json, math, os, sys

def table(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", newline="") as f:
        return list(csv.DictReader(f))


def read(path, spec):
    """The rows of all tables whose outcome is known, by id where there is one."""
    rows = {}
    for name in sorted(glob.glob(os.path.join(path, "*.csv*"))) or [path]:
        for i, r in enumerate(table(name)):
            rows.setdefault(r.get("id", i), {}).update(r)

    def known(r):
        y = r[spec["outcome"]]
        if "event" in spec and r[spec["event"]] not in spec["levels"] or spec.get("site") and r[spec["site"]] == "":
            return False
        if "levels" in spec and "event" not in spec:
            return y in spec["levels"]
        return y != "" and float(y) >= spec.get("least", -math.inf)

    return [rows[i] for i in sorted(rows) if known(rows[i])]


def moments(values):
    mean = math.fsum(values) / len(values)
    return mean, math.fsum((x - mean) ** 2 for x in values) / len(values)


def design(rows, spec):
    """Sparse rows of the design matrix, and the names of its columns."""
    x, names = [[] for _ in rows], []
    for name in spec["features"]:
        levels = spec.get("categories", {}).get(name)
        if levels is None:
            mean, var = moments([float(r[name]) for r in rows if r[name] != ""])
            for entries, r in zip(x, rows):
                if r[name] != "":
                    entries.append((len(names), (float(r[name]) - mean) / math.sqrt(var)))
            names.append(name)
            continue
        count = [sum(r[name] == v for r in rows) for v in levels]
        left = levels[count.index(max(count))]
        place = {}
        for v in levels:
            if v != left:
                place[v] = len(names)
                names.append(name + "=" + v)
        for entries, r in zip(x, rows):
            if r[name] in place:
                entries.append((place[r[name]], 1.0))
    return x, names


def periods(x, names, rows, spec):
    """A row for each period that a subject was seen in, and whether the event was in it."""
    out, y, ends = [], [], spec["cuts"]
    for entries, r in zip(x, rows):
        time, event, begin = float(r[spec["outcome"]]), r[spec["event"]] == spec["levels"][1], 0
        for k, end in enumerate(ends):
            if time <= end and not event and time < (begin + end) / 2:
                break
            out.append(entries + [(len(names) + k, 1.0)])
            y.append(float(event and time <= end))
            if time <= end:
                break
            begin = end
    return out, y, names + ["until %g" % end for end in ends]


def invert(a):
    """The inverse of a positive definite matrix by its lower triangle, by Cholesky's factor."""
    n = len(a)
    low = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            s = a[i][j] - sum(map(float.__mul__, low[i][:j], low[j][:j]))
            low[i][j] = math.sqrt(s) if i == j else s / low[j][j]
    up = [[0.0] * n for _ in range(n)]  # of the factor's inverse, transposed
    for j in range(n):
        for i in range(j, n):
            s = float(i == j) - sum(map(float.__mul__, low[i][j:i], up[j][j:i]))
            up[j][i] = s / low[i][i]
    out = [[0.0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            out[i][j] = out[j][i] = sum(map(float.__mul__, up[i][i:], up[j][i:]))
    return out


def logistic(t, a, _):
    p = 1 / (1 + math.exp(-a))
    return t - p, p * (1 - p)


def poisson(t, a, _):
    rate = math.exp(min(a, 30))
    return t - rate, rate


def linear(t, a, noise):
    return (t - a) / noise, 1 / noise


def fit(x, y, d, slopes, prior, centre, start):
    """Mean and covariance; slopes are the first derivative, and minus the second."""
    m, s = list(start), None
    noise = moments(y)[1]
    for step in range(200):
        g, h, squares = [(centre[j] - m[j]) / prior[j] for j in range(d)], [[0.0] * d for _ in range(d)], 0.0
        for entries, t in zip(x, y):
            a, c = sum(v * m[j] for j, v in entries), 0.0
            if s and slopes is linear:
                for i, (j, v) in enumerate(entries):
                    row = s[j]
                    c += v * (v * row[j] + 2 * sum(w * row[k] for k, w in entries[:i]))
            first, second = slopes(t, a, noise)
            squares += (t - a) ** 2 + max(c, 0.0)
            for i, (j, v) in enumerate(entries):
                g[j] += first * v
                row, v = h[j], v * second
                for k, w in entries[: i + 1]:
                    row[k] += v * w
        for j in range(d):
            h[j][j] += 1 / prior[j]
        s = invert(h)
        move = [sum(map(float.__mul__, s[j], g)) for j in range(d)]
        m = [a + b for a, b in zip(m, move)]
        off = max(abs(b) / math.sqrt(s[j][j]) for j, b in enumerate(move))
        if slopes is linear:
            off = max(off, abs(math.log(squares / len(y) / noise)))
            noise = squares / len(y)
        print(f"step {step + 1}: {off:.3g} standard deviations", file=sys.stderr)
        if off < 1e-6 and step > 0:
            return m, [s[j][: j + 1] for j in range(d)]
    sys.exit("not converged")


def several(x, y, d, classes, prior):
    """Mode and inverse information of the weights of each class, less what all classes share."""
    n = d * classes
    m = [0.0] * n
    for step in range(200):
        g, h = [-w / prior[j % d] for j, w in enumerate(m)], [[0.0] * n for _ in range(n)]
        for entries, t in zip(x, y):
            a = [sum(w * m[k * d + j] for j, w in entries) for k in range(classes)]
            e = [math.exp(b - max(a)) for b in a]
            p = [b / sum(e) for b in e]
            for k in range(classes):
                first = (k == t) - p[k]
                for at, (j, w) in enumerate(entries):
                    g[k * d + j] += first * w
                    row = h[k * d + j]
                    for o in range(k):
                        curve = -w * p[k] * p[o]
                        for q, u in entries:
                            row[o * d + q] += curve * u
                    curve = w * p[k] * (1 - p[k])
                    for q, u in entries[: at + 1]:
                        row[k * d + q] += curve * u
        for j in range(n):
            h[j][j] += 1 / prior[j % d]
        s = invert(h)
        move = [sum(map(float.__mul__, s[j], g)) for j in range(n)]
        m = [a + b for a, b in zip(m, move)]
        s = [centre(row, d, classes) for row in s]
        s = [list(row) for row in zip(*(centre(column, d, classes) for column in zip(*s)))]
        off = max(abs(b) / math.sqrt(s[j][j]) for j, b in enumerate(move))
        print(f"step {step + 1}: {off:.3g} standard deviations", file=sys.stderr)
        if off < 1e-6:
            return centre(m, d, classes), [s[j][: j + 1] for j in range(n)]
    sys.exit("not converged")


def centre(v, d, classes):
    """Less the mean over classes."""
    mean = [sum(v[j::d]) / classes for j in range(d)]
    return [w - mean[j % d] for j, w in enumerate(v)]


def main():
    spec = json.load(open(sys.argv[2]))
    if len(sys.argv) > 3:
        spec = next(s for s in spec if s["name"] == sys.argv[3])
    rows, levels = read(sys.argv[1], spec), spec.get("levels", [])
    x, names = design(rows, spec)
    unit, centre, start, slopes, first = 1.0, 0.0, 0.0, logistic, len(names)
    if "event" in spec:
        x, y, names = periods(x, names, rows, spec)
    else:
        x, names = [entries + [(first, 1.0)] for entries in x], names + ["intercept"]
        y = [float(levels.index(r[spec["outcome"]]) if levels else r[spec["outcome"]]) for r in rows]
    if spec.get("count"):
        slopes, start = poisson, math.log(moments(y)[0])
    elif not levels:
        slopes, (centre, unit) = linear, moments(y)
    if len(levels) > 2:
        m, s = several(x, y, len(names), len(levels), [6.25] * first + [100] * (len(names) - first))
        names = [v + ": " + name for v in levels for name in names]
    else:
        rest = len(names) - first
        m, s = fit(x, y, len(names), slopes, [6.25 * unit] * first + [100 * unit] * rest, [0.0] * first + [centre] * rest, [0.0] * first + [start] * rest)
    out = csv.writer(sys.stdout, lineterminator="\n")
    for name, mean, row in zip(names, m, s):
        out.writerow([name, "%.10g" % mean] + ["%.8g" % v for v in row])


main()
