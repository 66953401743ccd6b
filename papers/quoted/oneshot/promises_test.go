package oneshot

import (
	"context"
	"iter"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/judge/evaluate"
	"parley/methods/factors"
	"parley/methods/factors/fitted"
	"parley/papers/deal"
	"parley/papers/protocoltest"
)

// federated is federate for cross-validation.
func federated(o options, seed uint64) protocoltest.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		m, _, err := federate(ctx, sites, o, seed)
		if err != nil {
			return nil, err
		}
		return m.Predictive(sites[0].Schema(), fitted.Population{})
	}
}

// central is the maximum-likelihood fit of the same model to the rows of all
// sites in one place, with the same views missing.
func central(q int) protocoltest.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		p, err := plan(sites[0].Schema(), evaluate.SiteNames(len(sites)), asIs(q, 0), 1)
		if err != nil {
			return nil, err
		}
		return factors.Method{}.Central(ctx, p, pooled(sites))
	}
}

// pooled is the rows of all sites, one site after the other.
type pooled []dataset.Source

func (p pooled) Schema() dataset.Schema { return p[0].Schema() }

func (p pooled) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for _, site := range p {
			for row, err := range site.Rows(ctx) {
				if !yield(row, err) || err != nil {
					return
				}
			}
		}
	}
}

// pca is the trivial rival: principal components with means in the gaps.
func pca(q int) protocoltest.Fit {
	return func(ctx context.Context, sites []dataset.Source) (evaluate.Model, error) {
		return evaluate.FitPCA(ctx, q, sites...)
	}
}

func testError(r protocoltest.Result) float64  { return r.Test.MAE }
func testLogLik(r protocoltest.Result) float64 { return r.Test.LogLik }

func mean(results []protocoltest.Result, of func(protocoltest.Result) float64) float64 {
	s := 0.0
	for _, r := range results {
		s += of(r)
	}
	return s / float64(len(results))
}

// On the synthetic data the default has a test error at most 2 % above the central fit's, and no fold's
// log-likelihood is .15 away from its.
func TestSyntheticData(t *testing.T) {
	d := testkit.Get(openDraw(t.Context(), "testdata/sd", 1))(t)
	for _, sc := range scenarios {
		splits := testkit.Get(d.splits(sc, 3))(t)
		run := func(fit protocoltest.Fit) []protocoltest.Result {
			return testkit.Get(protocoltest.CrossValidate(t.Context(), d.data, splits, "", fit))(t)
		}
		whole, sums := run(central(sdFactors)), run(federated(asIs(sdFactors, 3), 1))
		if got, most := mean(sums, testError), 1.02*mean(whole, testError); !(got <= most) {
			t.Errorf("%v: test error %v, want at most %v", sc, got, most)
		}
		for i, r := range sums {
			if gap := math.Abs(testLogLik(r) - testLogLik(whole[i])); !(gap <= 0.15) {
				t.Errorf("%v, fold %d: the log-likelihood is %v from the central fit's", sc, i, gap)
			}
		}
	}
}

const adcsfFactors = 6

// adcsfBars are the test errors that repeat 0 must reach: what the authors' own later code
// reaches (0.1000, 0.1007, 0.1017, 0.1023), bettered.
var adcsfBars = map[evaluate.Scenario]float64{evaluate.IID: 0.0999, evaluate.G: 0.0999, evaluate.K: 0.1009,
	evaluate.GK: 0.1011}

func TestClinicalData(t *testing.T) {
	const data = "../../../judge/evaluate/testdata/adcsf"
	src := testkit.Get(deal.Open(t.Context(), data))(t)
	run := func(sc evaluate.Scenario, fit protocoltest.Fit) float64 {
		splits := testkit.Get(protocoltest.StoredSplits(data+"-splits.csv.gz", sc, len(src.Schema().Views), 1))(t)
		r := testkit.Get(protocoltest.CrossValidate(t.Context(), src, splits, "group", fit))(t)
		return mean(r, testError)
	}
	// An independent implementation (scikit-learn 1.2.1) on the same rows.
	if got := run(evaluate.IID, pca(adcsfFactors)); math.Abs(got-0.0993) > 0.00005 {
		t.Errorf("central PCA: test error %v, want 0.0993", got)
	}
	for _, sc := range scenarios {
		if got := run(sc, federated(asIs(adcsfFactors, 3), 1)); !(got <= adcsfBars[sc]) {
			t.Errorf("%v: test error %v, want at most %v", sc, got, adcsfBars[sc])
		}
	}
}

// The mean estimate reaches what the method is known to reach on such data: 6 % where the
// spread is large, a fifth where sampling hides it, and nearly nothing where there is none.
func TestSpreadBetweenSites(t *testing.T) {
	const sites, seeds = 6, 3
	for _, c := range spreadCases {
		found := map[string][]float64{}
		for seed := range uint64(seeds) {
			v := testkit.Get(estimate(t.Context(), sites, c, seed+1))(t)
			for name, x := range v {
				found[name] = append(found[name], x...)
			}
		}
		for i, name := range []string{ofLoadings, ofMeans} {
			least, most := 0.8*c[i], 1.2*c[i]
			switch {
			case c[i] == 0:
				most = 0.008
			case c[i] > 0.04:
				least, most = 0.94*c[i], 1.06*c[i]
			}
			if got := stat.Mean(found[name], nil); !(got >= least && got <= most) {
				t.Errorf("spreads of %v, sd of %s: %v, want %v to %v", c, name, got, least, most)
			}
		}
	}
}

// The spread is stated in the units of a fit: factors with mean 0 and
// covariance I over both groups.
func TestPopulationIsStandard(t *testing.T) {
	const n = 100_000
	p := newPopulation(1)
	mean, square := make([]float64, sdFactors), make([]float64, sdFactors*sdFactors)
	for range n {
		x := p.subject()
		for a, u := range x {
			mean[a] += u / n
			for b, v := range x {
				square[a*sdFactors+b] += u * v / n
			}
		}
	}
	for a, m := range mean {
		if math.Abs(m) > 0.02 {
			t.Errorf("factor %d has mean %v", a, m)
		}
		for b := range sdFactors {
			want := 0.0
			if a == b {
				want = 1
			}
			if got := square[a*sdFactors+b]; math.Abs(got-want) > 0.02 {
				t.Errorf("covariance of factors %d and %d is %v, want %v", a, b, got, want)
			}
		}
	}
}
