/*
 * Maximum likelihood of probabilistic PCA (one noise variance a view) or factor analysis
 * (one a feature) from rows in one place, values missing at random: an implementation that
 * shares nothing with the program, to hold it against. It works row by row (the program
 * works with sums for sets of features), and plain C is all it needs:
 *
 *     cc -O2 -o central central.c -lm && ./central < rows
 *
 * Input, numbers apart by white space, "nan" for what is missing:
 *     rows, features, factors, views, 1 for noise by feature or 0 for noise by view,
 *     1 to remove the sites' shrunken means first or 0 not to, 1 if a start follows or 0, the
 *     least noise variance of a feature as a share of its variance, the features of each view;
 *     then for each row its site (from 0; -1 for one that is not in the training),
 *     whether it is of the training (1) or not (0), and its values;
 *     then the start if there is one: by feature its mean, loadings and noise variance.
 * The likeliest of the fits from principal directions, from random ones and from the start
 * is the answer.
 * Output: nats a row of training rows and of the others; then by feature the mean, the
 * loadings and the noise variance; then, if sites' means were removed, for each site its
 * offset of each feature. The others are scored with the offset of their site, and where
 * that is -1 without.
 *
 * EM with parameter expansion: Liu, Rubin and Wu, Biometrika 1998. The sites' means are
 * those of a one-way random-effects model for each feature alone, by the analysis of
 * variance (Searle, Casella and McCulloch, "Variance Components", chapter 3).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n, d, q, views, byFeature, siteMeans, sites, given;
static int *dims, *viewOf, *site, *train;
static double *t; /* n × d */
static double leastNoise;

typedef struct {
	double *mu, *w, *psi; /* d, d × q, d */
	double nats;          /* a training row */
} model;

static void *array(size_t count, size_t size) {
	void *p = calloc(count ? count : 1, size);
	if (!p) {
		fputs("out of memory\n", stderr);
		exit(1);
	}
	return p;
}

static double *numbers(size_t count) { return array(count, sizeof(double)); }

static double number(void) {
	char word[64];
	if (scanf("%63s", word) != 1) {
		fputs("the input ends early\n", stderr);
		exit(1);
	}
	return strtod(word, NULL);
}

/* inverts a positive definite matrix in place and returns the logarithm of its determinant */
static double invert(double *a, int m) {
	double logdet = 0;
	for (int k = 0; k < m; k++) { /* Gauss-Jordan, pivots on the diagonal */
		double pivot = a[k * m + k];
		if (!(pivot > 0)) {
			fputs("a matrix is not positive definite\n", stderr);
			exit(1);
		}
		logdet += log(pivot);
		a[k * m + k] = 1;
		for (int j = 0; j < m; j++)
			a[k * m + j] /= pivot;
		for (int i = 0; i < m; i++)
			if (i != k) {
				double f = a[i * m + k];
				a[i * m + k] = 0;
				for (int j = 0; j < m; j++)
					a[i * m + j] -= f * a[k * m + j];
			}
	}
	return logdet;
}

/* the posterior of the factors of a row, and the row's log-likelihood */
static double expect(const model *p, const double *row, double *M, double *x) {
	double ll = 0, c[q];
	memset(M, 0, sizeof(double) * q * q);
	memset(c, 0, sizeof c);
	for (int a = 0; a < q; a++)
		M[a * q + a] = 1;
	for (int j = 0; j < d; j++) {
		if (isnan(row[j]))
			continue;
		const double *w = p->w + j * q;
		double e = row[j] - p->mu[j], s = 1 / p->psi[j];
		ll -= .5 * (log(2 * M_PI * p->psi[j]) + e * e * s);
		for (int a = 0; a < q; a++) {
			c[a] += w[a] * s * e;
			for (int b = 0; b < q; b++)
				M[a * q + b] += w[a] * s * w[b];
		}
	}
	ll -= .5 * invert(M, q);
	for (int a = 0; a < q; a++) {
		x[a] = 0;
		for (int b = 0; b < q; b++)
			x[a] += M[a * q + b] * c[b];
		ll += .5 * c[a] * x[a];
	}
	return ll;
}

static double nats(const model *p, int which) {
	double sum = 0, rows = 0, M[q * q], x[q];
	for (int i = 0; i < n; i++)
		if (train[i] == which) {
			sum += expect(p, t + (size_t)i * d, M, x);
			rows++;
		}
	return sum / rows;
}

/* one step; returns the nats a training row before it */
static double step(model *p, const double *least) {
	int e = q + 1;
	double *R = numbers((size_t)d * e * e), *B = numbers((size_t)d * e), *T = numbers(d), *N = numbers(d);
	double nu[q], Xi[q * q], M[q * q], x[e], r[e * e], sum = 0, rows = 0;
	memset(nu, 0, sizeof nu);
	memset(Xi, 0, sizeof Xi);
	for (int i = 0; i < n; i++) {
		if (!train[i])
			continue;
		const double *row = t + (size_t)i * d;
		sum += expect(p, row, M, x);
		rows++;
		x[q] = 1;
		for (int a = 0; a < e; a++)
			for (int b = 0; b < e; b++)
				r[a * e + b] = x[a] * x[b] + (a < q && b < q ? M[a * q + b] : 0);
		for (int a = 0; a < q; a++) {
			nu[a] += x[a];
			for (int b = 0; b < q; b++)
				Xi[a * q + b] += r[a * e + b];
		}
		for (int j = 0; j < d; j++) {
			if (isnan(row[j]))
				continue;
			N[j]++;
			T[j] += row[j] * row[j];
			for (int a = 0; a < e; a++)
				B[j * e + a] += row[j] * x[a];
			for (int a = 0; a < e * e; a++)
				R[(size_t)j * e * e + a] += r[a];
		}
	}
	double *rest = numbers(d);
	for (int j = 0; j < d; j++) {
		if (N[j] == 0)
			continue;
		double *Rj = R + (size_t)j * e * e, *b = B + j * e, y[e];
		invert(Rj, e);
		rest[j] = T[j];
		for (int a = 0; a < e; a++) {
			y[a] = 0;
			for (int c = 0; c < e; c++)
				y[a] += Rj[a * e + c] * b[c];
			rest[j] -= y[a] * b[a];
		}
		memcpy(p->w + j * q, y, sizeof(double) * q);
		p->mu[j] = y[q];
	}
	for (int j = 0; j < d; j++) {
		double over = 0, cells = 0;
		for (int k = 0; k < d; k++)
			if (byFeature ? k == j : viewOf[k] == viewOf[j]) {
				over += rest[k];
				cells += N[k];
			}
		p->psi[j] = cells > 0 ? over / cells : 1;
		if (p->psi[j] < least[j])
			p->psi[j] = least[j];
	}
	/* what the factors' own mean and covariance have become goes into μ and W */
	double L[q * q];
	memset(L, 0, sizeof L);
	for (int a = 0; a < q; a++)
		nu[a] /= rows;
	for (int a = 0; a < q; a++)
		for (int b = 0; b <= a; b++) {
			double v = Xi[a * q + b] / rows - nu[a] * nu[b];
			for (int c = 0; c < b; c++)
				v -= L[a * q + c] * L[b * q + c];
			L[a * q + b] = a == b ? sqrt(v) : v / L[b * q + b];
		}
	for (int j = 0; j < d; j++) {
		double y[q];
		for (int a = 0; a < q; a++) {
			p->mu[j] += p->w[j * q + a] * nu[a];
			y[a] = 0;
			for (int b = a; b < q; b++)
				y[a] += p->w[j * q + b] * L[b * q + a];
		}
		memcpy(p->w + j * q, y, sizeof y);
	}
	free(R), free(B), free(T), free(N), free(rest);
	return sum / rows;
}

static double next(unsigned long long *state) { /* a number of about mean 0 and variance 1 */
	double sum = -6;
	for (int i = 0; i < 12; i++) {
		*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
		sum += (double)(*state >> 11) / 9007199254740992.0;
	}
	return sum;
}

static model empty(void) {
	model p = {numbers(d), numbers((size_t)d * q), numbers(d), 0};
	return p;
}

/* random directions, or these after 100 powers of the covariance of what is observed; least
   becomes the least noise variances */
static model begin(int principal, double *least) {
	unsigned long long state = principal ? 1 : 2;
	model p = empty();
	double *scores = numbers((size_t)n * q);
	for (int j = 0; j < d; j++) {
		double rows = 0, m = 0, s = 0;
		for (int i = 0; i < n; i++)
			if (train[i] && !isnan(t[(size_t)i * d + j])) {
				double e = t[(size_t)i * d + j] - m;
				m += e / ++rows;
				s += e * (t[(size_t)i * d + j] - m);
			}
		p.mu[j] = m;
		p.psi[j] = rows > 0 && s > 0 ? s / rows / 2 : 1;
		least[j] = 2 * (byFeature ? leastNoise : 1e-6) * p.psi[j];
		for (int a = 0; a < q; a++)
			p.w[j * q + a] = next(&state);
	}
	for (int power = 0; power < (principal ? 100 : 0); power++) {
		for (int i = 0; i < n; i++)
			for (int a = 0; a < q; a++) {
				double s = 0;
				for (int j = 0; j < d; j++)
					if (train[i] && !isnan(t[(size_t)i * d + j]))
						s += (t[(size_t)i * d + j] - p.mu[j]) * p.w[j * q + a];
				scores[(size_t)i * q + a] = s;
			}
		for (int j = 0; j < d; j++)
			for (int a = 0; a < q; a++) {
				double s = 0;
				for (int i = 0; i < n; i++)
					if (train[i] && !isnan(t[(size_t)i * d + j]))
						s += (t[(size_t)i * d + j] - p.mu[j]) * scores[(size_t)i * q + a];
				p.w[j * q + a] = s;
			}
		for (int a = 0; a < q; a++) { /* Gram-Schmidt */
			for (int b = 0; b < a; b++) {
				double s = 0;
				for (int j = 0; j < d; j++)
					s += p.w[j * q + a] * p.w[j * q + b];
				for (int j = 0; j < d; j++)
					p.w[j * q + a] -= s * p.w[j * q + b];
			}
			double s = 0;
			for (int j = 0; j < d; j++)
				s += p.w[j * q + a] * p.w[j * q + a];
			for (int j = 0; j < d; j++)
				p.w[j * q + a] /= sqrt(s);
		}
	}
	free(scores);
	return p;
}

static model climb(model p, const double *least) {
	double past = -INFINITY;
	for (int i = 0; i < 3000; i++) {
		p.nats = step(&p, least);
		if (i % 10 == 0) {
			if (p.nats - past < 1e-6)
				break;
			past = p.nats;
		}
	}
	p.nats = nats(&p, 1);
	return p;
}

/* takes each site's shrunken mean off its rows; offset is sites × d */
static void removeMeans(double *offset) {
	for (int j = 0; j < d; j++) {
		double N[sites], m[sites], all = 0, rows = 0, squares = 0, within = 0, between = 0;
		int having = 0;
		memset(N, 0, sizeof N);
		memset(m, 0, sizeof m);
		for (int i = 0; i < n; i++)
			if (train[i] && !isnan(t[(size_t)i * d + j])) {
				double x = t[(size_t)i * d + j], *mean = m + site[i], e = x - *mean;
				*mean += e / ++N[site[i]];
				within += e * (x - *mean);
				all += x;
				rows++;
			}
		for (int s = 0; s < sites; s++)
			if (N[s] > 0) {
				having++;
				squares += N[s] * N[s];
				between += N[s] * pow(m[s] - all / rows, 2);
			}
		if (having < 2 || rows < 2 * having)
			continue;
		within /= rows - having;
		double v = (between / (having - 1) - within) / ((rows - squares / rows) / (having - 1));
		if (!(v > 0))
			continue;
		double sum = 0, weight = 0;
		for (int s = 0; s < sites; s++)
			if (N[s] > 0) {
				double w = 1 / (v + within / N[s]);
				sum += w * m[s];
				weight += w;
			}
		for (int s = 0; s < sites; s++)
			if (N[s] > 0)
				offset[s * d + j] = v / (v + within / N[s]) * (m[s] - sum / weight);
	}
	for (int i = 0; i < n; i++)
		for (int j = 0; j < d && site[i] >= 0; j++)
			t[(size_t)i * d + j] -= offset[site[i] * d + j];
}

int main(void) {
	n = number(), d = number(), q = number(), views = number(), byFeature = number(), siteMeans = number();
	given = number(), leastNoise = number();
	dims = array(views, sizeof(int)), viewOf = array(d, sizeof(int));
	for (int k = 0, j = 0; k < views; k++) {
		dims[k] = number();
		for (int i = 0; i < dims[k] && j < d; i++)
			viewOf[j++] = k;
	}
	site = array(n, sizeof(int)), train = array(n, sizeof(int)), t = numbers((size_t)n * d);
	for (int i = 0; i < n; i++) {
		site[i] = number(), train[i] = number();
		if (site[i] >= sites)
			sites = site[i] + 1;
		for (int j = 0; j < d; j++)
			t[(size_t)i * d + j] = number();
	}
	double *offset = numbers((size_t)sites * d);
	if (siteMeans)
		removeMeans(offset);
	double *least = numbers(d);
	model starts[3] = {begin(1, least), begin(0, least), empty()};
	for (int j = 0; given && j < d; j++) {
		starts[2].mu[j] = number();
		for (int a = 0; a < q; a++)
			starts[2].w[j * q + a] = number();
		starts[2].psi[j] = number();
	}
	model best = climb(starts[0], least);
	for (int i = 1; i < 2 + given; i++) {
		model other = climb(starts[i], least);
		if (other.nats > best.nats)
			best = other;
	}
	printf("%.17g %.17g\n", best.nats, nats(&best, 0));
	for (int j = 0; j < d; j++) {
		printf("%.17g", best.mu[j]);
		for (int a = 0; a < q; a++)
			printf(" %.17g", best.w[j * q + a]);
		printf(" %.17g\n", best.psi[j]);
	}
	for (int s = 0; siteMeans && s < sites; s++)
		for (int j = 0; j < d; j++)
			printf("%.17g%c", offset[s * d + j], j == d - 1 ? '\n' : ' ');
	return 0;
}
