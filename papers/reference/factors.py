#!/usr/bin/env python3
"""Maximum likelihood of a factor model on pooled rows, calculated a second time with numpy
and nothing of Parley.

    factors.py ROWS FEATURES Q > reference.json

ROWS is a file of little-endian float64, row by row, with NaN for what is missing; FEATURES
is how many a row has, and Q how many factors are fitted. Noise is per feature.

Rows are scaled by mean and standard deviation (÷ n) of what is observed, and those that
lack the same features are taken together. EM is parameter-expanded (Liu, Rubin and Wu
1998): loadings and mean in one regression, then the mean and covariance of the factors are
moved into them. It starts at the leading Q singular vectors of the rows, 0 standing for
what is missing, and ends when the mean log-likelihood has grown by less than 1e-7 in ten
iterations, or after 2000. Noise variances are at least a thousandth of the feature's.

Written are the log-likelihood per row of the scaled values, the iterations, and what
scaling and fit took (not reading): wall and processor seconds; and which library numpy
multiplies with, as far as the operating system tells: the reference BLAS, which Debian
installs with numpy unless libopenblas0 is there, takes two to three times as long.
"""
import json, re, sys, time

import numpy as np


def grouped(x):
    """Rows that observe the same features: pairs of features and values."""
    seen = ~np.isnan(x)
    groups = {}
    for i, row in enumerate(np.packbits(seen, axis=1)):
        groups.setdefault(row.tobytes(), []).append(i)
    out = []
    for rows in groups.values():
        features = np.flatnonzero(seen[rows[0]])
        if len(features):
            out.append((features, x[np.ix_(rows, features)]))
    return out


def start(x, q):
    filled = np.nan_to_num(x)
    n, d = x.shape
    # Squares of singular values from the smaller of the two products.
    if d <= n:
        squares, v = np.linalg.eigh(filled.T @ filled)
        v = v[:, ::-1][:, :q]
    else:
        squares, u = np.linalg.eigh(filled @ filled.T)
        v = filled.T @ u[:, ::-1][:, :q] / np.sqrt(squares[::-1][:q])
    squares = squares[::-1]
    rest = squares[q:].sum() / n / max(1, d - q)
    w = v * np.sqrt(np.maximum(squares[:q] / n - rest, 1e-6))
    return w, np.zeros(d), np.maximum(1 - (w**2).sum(1), 0.05)


def fit(x, q, tolerance=1e-7, window=10, most=2000):
    n, d = x.shape
    mean, sd = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
    x = (x - mean) / sd
    groups = grouped(x)
    w, mu, psi = start(x, q)
    count, squares = (~np.isnan(x)).sum(0), np.nansum(x * x, axis=0)
    log2pi = np.log(2 * np.pi)
    # Where all groups that have a feature are the same, so are its normal equations.
    having = np.zeros((len(groups), d), bool)
    for g, (o, _) in enumerate(groups):
        having[g, o] = True
    alike = {}
    for j in range(d):
        alike.setdefault(having[:, j].tobytes(), []).append(j)
    alike = [(having[:, js[0]], np.array(js)) for js in alike.values()]
    trace = []
    while True:
        cross, sums = np.zeros((d, q + 1)), np.zeros((len(groups), q + 1, q + 1))
        total, first, second = 0.0, np.zeros(q), np.zeros((q, q))
        for g, (o, rows) in enumerate(groups):
            m = len(rows)
            p = w[o] / psi[o, None]
            chol = np.linalg.cholesky(np.eye(q) + w[o].T @ p)
            cov = np.linalg.inv(chol @ chol.T)
            off = rows - mu[o]
            z = off @ (p @ cov)
            total -= 0.5 * (
                m * (len(o) * log2pi + np.log(psi[o]).sum() + 2 * np.log(np.diag(chol)).sum())
                + ((off * off) / psi[o]).sum()
                - ((off @ p) * z).sum()
            )
            ones = np.hstack([z, np.ones((m, 1))])
            cross[o] += rows.T @ ones
            s = ones.T @ ones
            s[:q, :q] += m * cov
            sums[g] = s
            first += s[:q, q]
            second += s[:q, :q]
        trace.append(total / n)
        if len(trace) > window and trace[-1] - trace[-1 - window] < tolerance or len(trace) > most:
            return trace[-1], len(trace) - 1
        for which, js in alike:
            s = sums[which].sum(0)
            b = np.linalg.solve(s, cross[js].T).T
            w[js], mu[js] = b[:, :q], b[:, q]
            psi[js] = (squares[js] - (b * cross[js]).sum(1)) / count[js]
        psi = np.maximum(psi, 1e-3)
        first, second = first / n, second / n
        mu = mu + w @ first
        w = w @ np.linalg.cholesky(second - np.outer(first, first))


def blas():
    """The optimised library in use; "" if there is none, or nobody says."""
    try:
        with open("/proc/self/maps") as f:
            found = re.search(r"openblas|mkl_rt|blis|accelerate|atlas", f.read(), re.I)
    except OSError:
        return ""
    return found.group(0).lower() if found else ""


def main():
    path, features, q = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    x = np.fromfile(path, "<f8").reshape(-1, features)
    wall, cpu = time.perf_counter(), time.process_time()
    loglik, iterations = fit(x, q)
    json.dump(
        {
            "numpy": np.__version__,
            "blas": blas(),
            "log_likelihood_per_subject": loglik,
            "iterations": iterations,
            "wall": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
        },
        sys.stdout,
    )


main()
