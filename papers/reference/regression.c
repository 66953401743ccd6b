/*
 * Bayesian regression of rows in one place, logistic or Poisson, with or without a random
 * intercept for each site: an implementation that shares nothing with the program, to hold
 * it against. Expectations and integrals are trapezoidal sums, second derivatives of the
 * marginal likelihood are differences of the first. Plain C is all it needs:
 *
 *     cc -O2 -o regression regression.c -lm && ./regression < rows
 *
 * Input, numbers apart by white space:
 *     rows, columns, sites, 0 for logistic or 1 for Poisson, 1 for random intercepts or 0,
 *     the prior variance of each column's weight (mean 0), the scale of the half-normal
 *     prior of tau (any number without random intercepts);
 *     then for each row its outcome (-1 or 1, or a count), offset, weight, site (from 0) and
 *     columns.
 * Output: means of the weights; their covariance by rows; with random intercepts the 5 %,
 * 50 % and 95 % quantiles of tau and the mean of tau squared.
 *
 * Without random intercepts the posterior is the normal distribution that maximises the
 * evidence lower bound, by its fixed point (Opper and Archambeau, Neural Computation 2009).
 * With them the weights are normal about their mode for each tau of a fine grid (Rue,
 * Martino and Chopin, J R Stat Soc B 2009).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 600, GRID = 1100, MOST = 64 };

static int n, p, sites, family, mixed;
static double prior[MOST], tauScale;
static double *y, *offset, *weight, *x;
static int *site;

static double number(void) {
	double v;
	if (scanf("%lf", &v) != 1) {
		fputs("the input ends early\n", stderr);
		exit(1);
	}
	return v;
}

/* logDensity is ln p(y | f) with its first derivative and minus its second one. */
static double logDensity(double yy, double f, double *first, double *curve) {
	if (family == 0) {
		double t = yy * f, q = t > 0 ? exp(-t) / (1 + exp(-t)) : 1 / (1 + exp(t));
		*first = yy * q;
		*curve = q * (1 - q);
		return t > 0 ? -log1p(exp(-t)) : t - log1p(exp(t));
	}
	*first = yy - exp(f);
	*curve = exp(f);
	return yy * f - exp(f) - lgamma(yy + 1);
}

/* factor makes the Cholesky factor of a in place; its logarithm of the determinant. */
static double factor(double *a) {
	double logDet = 0;
	for (int i = 0; i < p; i++)
		for (int j = 0; j <= i; j++) {
			double s = a[i * p + j];
			for (int k = 0; k < j; k++)
				s -= a[i * p + k] * a[j * p + k];
			if (i == j) {
				if (!(s > 0)) {
					fputs("a matrix is not positive definite\n", stderr);
					exit(1);
				}
				a[i * p + i] = sqrt(s);
				logDet += log(s);
			} else
				a[i * p + j] = s / a[j * p + j];
		}
	return logDet;
}

static void solve(const double *l, double *b) {
	for (int i = 0; i < p; i++) {
		for (int k = 0; k < i; k++)
			b[i] -= l[i * p + k] * b[k];
		b[i] /= l[i * p + i];
	}
	for (int i = p - 1; i >= 0; i--) {
		for (int k = i + 1; k < p; k++)
			b[i] -= l[k * p + i] * b[k];
		b[i] /= l[i * p + i];
	}
}

static void invert(const double *l, double *inverse) {
	double e[MOST];
	for (int j = 0; j < p; j++) {
		memset(e, 0, sizeof e);
		e[j] = 1;
		solve(l, e);
		for (int i = 0; i < p; i++)
			inverse[i * p + j] = e[i];
	}
}

/* variational finds the fixed point. */
static void variational(double *m, double *s) {
	double *h = malloc(sizeof(double) * p * p), g[MOST];
	memset(m, 0, sizeof(double) * p);
	memset(s, 0, sizeof(double) * p * p);
	for (int sweep = 0; sweep < 400; sweep++) {
		memset(h, 0, sizeof(double) * p * p);
		for (int j = 0; j < p; j++) {
			h[j * p + j] = 1 / prior[j];
			g[j] = -m[j] / prior[j];
		}
		for (int i = 0; i < n; i++) {
			const double *r = x + (size_t)i * p;
			double a = offset[i], c = 0, first = 0, curve = 0;
			for (int j = 0; j < p; j++) {
				a += r[j] * m[j];
				for (int k = 0; k < p; k++)
					c += r[j] * s[j * p + k] * r[k];
			}
			for (int k = 0; k <= STEPS; k++) {
				double z = -10 + 20.0 * k / STEPS, d1, d2;
				double w = 20.0 / STEPS * exp(-z * z / 2) / sqrt(2 * M_PI);
				logDensity(y[i], a + sqrt(c) * z, &d1, &d2);
				first += w * d1;
				curve += w * d2;
			}
			for (int j = 0; j < p; j++) {
				g[j] += weight[i] * first * r[j];
				for (int k = 0; k < p; k++)
					h[j * p + k] += weight[i] * curve * r[j] * r[k];
			}
		}
		factor(h);
		solve(h, g);
		invert(h, s);
		double move = 0, f = 1;
		for (int j = 0; j < p; j++)
			move = fmax(move, fabs(g[j]) / sqrt(s[j * p + j]));
		if (move > 3 && sweep < 50) /* far away Newton's steps can overshoot */
			f = 3 / move;
		for (int j = 0; j < p; j++)
			m[j] += f * g[j];
		if (move < 1e-12)
			return;
	}
	fputs("the fixed point was not reached\n", stderr);
	exit(1);
}

/* rowsAt adds up the rows of a site at an intercept, with the gradient by the weights. */
static double rowsAt(int who, const double *w, double b, double *gradient) {
	double value = 0;
	memset(gradient, 0, sizeof(double) * p);
	for (int i = 0; i < n; i++) {
		if (site[i] != who)
			continue;
		const double *r = x + (size_t)i * p;
		double a = offset[i] + b, d1, d2;
		for (int j = 0; j < p; j++)
			a += r[j] * w[j];
		value += weight[i] * logDensity(y[i], a, &d1, &d2);
		for (int j = 0; j < p; j++)
			gradient[j] += weight[i] * d1 * r[j];
	}
	return value;
}

/* marginal is the log posterior of the weights given tau, with its gradient. */
static double marginal(const double *w, double tau, double *gradient) {
	double total = 0, g[MOST];
	for (int j = 0; j < p; j++) {
		total -= w[j] * w[j] / (2 * prior[j]);
		gradient[j] = -w[j] / prior[j];
	}
	for (int who = 0; who < sites; who++) {
		/* The mode by golden section, the width by differences. */
		double low = -12 * tau - 1, high = 12 * tau + 1;
		for (int k = 0; k < 70; k++) {
			double u = low + 0.382 * (high - low), v = low + 0.618 * (high - low);
			if (rowsAt(who, w, u, g) - u * u / (2 * tau * tau) < rowsAt(who, w, v, g) - v * v / (2 * tau * tau))
				low = u;
			else
				high = v;
		}
		double mode = (low + high) / 2, e = 1e-3 * fmin(tau, 1);
		double top = rowsAt(who, w, mode, g);
		double bend = (2 * top - rowsAt(who, w, mode + e, g) - rowsAt(who, w, mode - e, g)) / (e * e) + 1 / (tau * tau);
		double sd = 1 / sqrt(bend), sum = 0, mean[MOST] = {0};
		for (int k = 0; k <= 160; k++) {
			double b = mode + sd * (-10 + 20.0 * k / 160);
			double v = exp(rowsAt(who, w, b, g) - top - b * b / (2 * tau * tau)) / (tau * sqrt(2 * M_PI)) * sd * 20 / 160;
			sum += v;
			for (int j = 0; j < p; j++)
				mean[j] += v * g[j];
		}
		total += top + log(sum);
		for (int j = 0; j < p; j++)
			gradient[j] += mean[j] / sum;
	}
	return total;
}

int main(void) {
	n = number(), p = number(), sites = number(), family = number(), mixed = number();
	if (p < 1 || p > MOST || n < 1) {
		fputs("too many columns, or none\n", stderr);
		return 1;
	}
	for (int j = 0; j < p; j++)
		prior[j] = number();
	tauScale = number();
	y = malloc(sizeof(double) * n), offset = malloc(sizeof(double) * n), weight = malloc(sizeof(double) * n);
	site = malloc(sizeof(int) * n), x = malloc(sizeof(double) * n * p);
	for (int i = 0; i < n; i++) {
		y[i] = number(), offset[i] = number(), weight[i] = number(), site[i] = number();
		for (int j = 0; j < p; j++)
			x[(size_t)i * p + j] = number();
	}
	double m[MOST] = {0}, s[MOST * MOST] = {0};
	if (!mixed)
		variational(m, s);
	else {
		double w[MOST] = {0}, logP[GRID + 1], tau[GRID + 1], top = -INFINITY;
		double *means = malloc(sizeof(double) * (GRID + 1) * p), *covs = malloc(sizeof(double) * (GRID + 1) * p * p);
		for (int k = 0; k <= GRID; k++) {
			double l = log(tauScale) - 9 + 11.0 * k / GRID, h[MOST * MOST], g[MOST], up[MOST], down[MOST], value;
			tau[k] = exp(l);
			for (int step = 0;; step++) {
				value = marginal(w, tau[k], g);
				for (int j = 0; j < p; j++) {
					double old = w[j], e = 1e-4;
					w[j] = old + e, marginal(w, tau[k], up);
					w[j] = old - e, marginal(w, tau[k], down);
					w[j] = old;
					for (int i = 0; i < p; i++)
						h[i * p + j] = (down[i] - up[i]) / (2 * e);
				}
				for (int i = 0; i < p; i++)
					for (int j = 0; j < i; j++)
						h[i * p + j] = h[j * p + i] = (h[i * p + j] + h[j * p + i]) / 2;
				double logDet = factor(h), size = 0;
				logP[k] = value - logDet / 2 + l - tau[k] * tau[k] / (2 * tauScale * tauScale);
				invert(h, covs + (size_t)k * p * p);
				solve(h, g);
				for (int j = 0; j < p; j++) {
					size = fmax(size, fabs(g[j]));
				}
				for (int j = 0; j < p; j++)
					w[j] += size > 1 ? g[j] / size : g[j];
				if (size < 1e-8)
					break;
				if (step > 100) {
					fputs("a mode was not reached\n", stderr);
					return 1;
				}
			}
			memcpy(means + (size_t)k * p, w, sizeof(double) * p);
			top = fmax(top, logP[k]);
		}
		double sum = 0, square = 0, c[GRID + 1];
		for (int k = 0; k <= GRID; k++) {
			double v = exp(logP[k] - top);
			sum += v, square += v * tau[k] * tau[k];
			c[k] = sum - v / 2;
			for (int j = 0; j < p; j++)
				m[j] += v * means[(size_t)k * p + j];
		}
		for (int j = 0; j < p; j++)
			m[j] /= sum;
		for (int k = 0; k <= GRID; k++)
			for (int i = 0; i < p; i++)
				for (int j = 0; j < p; j++)
					s[i * p + j] += exp(logP[k] - top) / sum * (covs[(size_t)k * p * p + i * p + j] +
						(means[(size_t)k * p + i] - m[i]) * (means[(size_t)k * p + j] - m[j]));
		double level[3] = {0.05, 0.5, 0.95};
		double out[3];
		for (int q = 0; q < 3; q++) {
			int k = 1;
			while (k < GRID && c[k] < level[q] * sum)
				k++;
			double t = (level[q] * sum - c[k - 1]) / (c[k] - c[k - 1]);
			out[q] = exp(log(tau[k - 1]) + t * (log(tau[k]) - log(tau[k - 1])));
		}
		for (int j = 0; j < p; j++)
			printf("%.12g%c", m[j], j == p - 1 ? '\n' : ' ');
		for (int i = 0; i < p * p; i++)
			printf("%.12g%c", s[i], i % p == p - 1 ? '\n' : ' ');
		printf("%.8g %.8g %.8g %.8g\n", out[0], out[1], out[2], square / sum);
		return 0;
	}
	for (int j = 0; j < p; j++)
		printf("%.12g%c", m[j], j == p - 1 ? '\n' : ' ');
	for (int i = 0; i < p * p; i++)
		printf("%.12g%c", s[i], i % p == p - 1 ? '\n' : ' ');
	return 0;
}
