package mvppca

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat"

	"parley/method"
	"parley/method/judged"
	"parley/methods/mvppca/internal/synthetic"
	"parley/methods/mvppca/ppca"
	"parley/report"
	"parley/study"
)

// paperDraw draws n subjects as the data of the Fed-mv-PPCA paper (section 4.1)
// are, but with q factors: W, μ ~ U(−a, a) with a = 10, 5, 15, noise variances 2,
// 1, 3, and five eighths of the subjects moved together in latent space.
func paperDraw(r *rand.Rand, n, q int) (ppca.Layout, [][]float64) {
	l := ppca.Layout{Dims: []int{15, 8, 10}}
	var w, mu, sd []float64
	for k, d := range l.Dims {
		size := []float64{10, 5, 15}[k]
		for range d {
			for range q {
				w = append(w, size*(2*r.Float64()-1))
			}
			mu, sd = append(mu, size*(2*r.Float64()-1)), append(sd, math.Sqrt([]float64{2, 1, 3}[k]))
		}
	}
	shift := make([]float64, q)
	for a := range shift {
		shift[a] = 20*r.Float64() - 10
	}
	rows := make([][]float64, n)
	for i := range rows {
		x := make([]float64, q)
		for a := range x {
			x[a] = r.NormFloat64()
			if 8*i < 5*n {
				x[a] += shift[a]
			}
		}
		for j, m := range mu {
			rows[i] = append(rows[i], m+sd[j]*r.NormFloat64()+dot(w[j*q:][:q], x))
		}
	}
	r.Shuffle(n, func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return l, rows
}

// releasedOf makes what the sites of a study of these rows release at μ.
func releasedOf(t testing.TB, r *rand.Rand, l ppca.Layout, rows [][]float64, sites int, mu float64) *releasedStudy {
	s := synthetic.Must(NewStatistics(l, rangesOf(rows), 20))(t)
	out := &releasedStudy{coordinator: &coordinator{plan: &study.Plan{Seed: 1}, opts: &Options{Noise: "view"}, layout: l}}
	for range l.Views() {
		out.plan.Views = append(out.plan.Views, study.View{Name: fmt.Sprint(len(out.plan.Views))})
	}
	n := len(rows) / sites
	for i := range sites {
		out.sites = append(out.sites, fmt.Sprint(i))
		out.releases = append(out.releases, testRelease(t, r, s, cut(l, rows[i*n:(i+1)*n]), mu))
	}
	return out
}

// showable demands that a selection's result can be shown.
func showable(t *testing.T, r *method.Result) {
	t.Helper()
	page := report.Report{Title: "t", Headline: r.Headline, Sections: r.Sections}
	if err := page.HTML(&bytes.Buffer{}); err != nil {
		t.Error(err)
	}
	if _, err := json.Marshal(r.Metrics); err != nil || len(r.Metrics) == 0 {
		t.Errorf("metrics %v (%v)", r.Metrics, err)
	}
}

// With 4 000 subjects at three sites the number of factors is found at the totals
// ε = 3 and 10, δ = 10⁻⁵ (μ = 0.719 and 2.000, add-remove), from the releases
// alone. Of 40 other draws with 3 to 6 factors BIC found all, one standard error
// 36 (16 of 20 at ε = 3): with other seeds one of the four below fails by one standard
// error in about every third run, and by BIC hardly ever.
func TestFactorsAreFoundFromReleases(t *testing.T) {
	if testing.Short() {
		t.Skip("numbers that no concurrency changes")
	}
	for _, mu := range []float64{0.719, 2.000} {
		for _, q := range []int{5, 3} {
			r := rand.New(rand.NewPCG(uint64(q), 17))
			l, rows := paperDraw(r, 4000, q)
			out := synthetic.Must(releasedOf(t, r, l, rows, 3, mu).choose(t.Context(), judged.SelectConfig{Values: []int{q - 2, q - 1, q, q + 1, q + 2}}))(t)
			if bic, se := choiceOf(out, ruleBICOfSplit), choiceOf(out, ruleLeftOutSE); out.Recommended != q || bic != q || se != q {
				t.Errorf("μ = %v: recommended %d, BIC %d, within one standard error %d; the truth is %d", mu, out.Recommended, bic, se, q)
			}
			if len(out.Warnings) > 0 {
				t.Errorf("μ = %v, %d factors: %v", mu, q, out.Warnings)
			}
			showable(t, out.Result)
		}
	}
}

// One site and two say what they can, and noise that hides everything is named.
func TestSelectionFromFewReleasesSaysWhatItCannot(t *testing.T) {
	c := judged.SelectConfig{Values: []int{1, 3, 5}}
	for _, x := range []struct {
		sites, subjects int
		mu              float64
		note, warning   string
	}{
		{1, 2000, 2, "none can be left out", ""},
		{2, 2000, 2, "of two sites", ""},
		{3, 90, 0.2, "", "the choice means nothing"},
	} {
		r := rand.New(rand.NewPCG(uint64(x.sites), 18))
		l, rows := paperDraw(r, x.subjects, 3)
		out := synthetic.Must(releasedOf(t, r, l, rows, x.sites, x.mu).choose(t.Context(), c))(t)
		if got := fmt.Sprint(out.Notes); !strings.Contains(got, x.note) {
			t.Errorf("%d sites: the notes are %s", x.sites, got)
		}
		if got := fmt.Sprint(out.Warnings); !strings.Contains(got, x.warning) || x.warning == "" && len(out.Warnings) > 0 {
			t.Errorf("%d sites, μ = %v: the warnings are %s", x.sites, x.mu, got)
		}
		if _, left := out.Candidates[0].Scores[scoreLeftOut]; left != (x.sites > 1) {
			t.Errorf("%d sites: %v", x.sites, out.Candidates[0].Scores)
		}
		if x.warning == "" && out.Recommended != 3 {
			t.Errorf("%d sites recommend %d", x.sites, out.Recommended)
		}
		showable(t, out.Result)
	}
}

// The score of moments without noise is the log-likelihood of their subjects.
func TestDensityIsTheLogLikelihood(t *testing.T) {
	for _, noise := range []ppca.Noise{ppca.NoisePerView, ppca.NoisePerFeature} {
		l := synthetic.Shape(t, noise, 3, 2)
		r := rand.New(rand.NewPCG(4, 19))
		tr := synthetic.NewTruth(r, l, 2, 0.3)
		rows := tr.Subjects(r, 50)
		want, _, err := ppca.LogLik(l, &tr.P, synthetic.BlocksOf(t, l, rows))
		if err != nil {
			t.Fatal(err)
		}
		x := &total{p: 5, t: make([]float64, 36), z: make([]float64, 36), sd: make([]float64, 36), gain: make([]float64, 36)}
		for _, row := range rows {
			u := append(slices.Clone(row), 1)
			for j := range row {
				u[j] -= 0.5
			}
			for i := range u {
				for j := range u {
					x.t[i*6+j] += u[i] * u[j]
				}
			}
		}
		got, variance := synthetic.Must(density(l, &tr.P, l.AllFeatures()))(t).of(x)
		if math.Abs(got-want) > 1e-9*math.Abs(want) || variance != 0 {
			t.Errorf("%v with variance %v, want %v", got, variance, want)
		}
	}
}

// The known variance of a score is that of scores under repeated noise, and the
// variance over subjects that of subjects. Of 2 000 draws a standard deviation is known to
// 1.6 %: with other seeds one of the two is off by 8 % in fewer than one of 10⁵ runs.
func TestVarianceOfScoresIsKnown(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 3, 2)
	r := rand.New(rand.NewPCG(6, 20))
	tr := synthetic.NewTruth(r, l, 2, 0.3)
	s := synthetic.Must(NewStatistics(l, make2(5), 1))(t)
	rel := testRelease(t, r, s, cut(l, tr.Subjects(r, 500)), 2)
	u := unclipped(len(rel.Fine[0].Squeeze))
	x := synthetic.Must(rel.combine(0, [2]passed{u, u}))(t)
	other := synthetic.NewTruth(r, l, 2, 0.3)
	a := synthetic.Must(density(l, &tr.P, l.AllFeatures()))(t).minus(synthetic.Must(density(l, &other.P, l.AllFeatures()))(t))
	value, known := a.of(x)
	const n = 2000
	seen := 0.0
	for range n {
		again := *x
		again.t = slices.Clone(x.t)
		for i, e := range x.noise(r) {
			again.t[i] += e
		}
		v, _ := a.of(&again)
		seen += (v - value) * (v - value) / n
	}
	if ratio := math.Sqrt(seen / known); math.Abs(ratio-1) > 0.08 {
		t.Errorf("noise moves scores by %.3f of what is known of it", ratio)
	}
	f := &repaired{mean: make([]float64, 5), cov: make([]float64, 25)}
	group := l.GroupOf()
	for i := range 5 {
		f.mean[i] = tr.P.Mu[i] - 0.5
		for j := range 5 {
			f.cov[i*5+j] = dot(tr.P.W[i*2:][:2], tr.P.W[j*2:][:2])
		}
		f.cov[i*5+i] += tr.P.Noise[group[i]]
	}
	var scores []float64
	for _, row := range tr.Subjects(r, n) {
		v := append(row, 1)
		sum := 0.0
		for i := range v {
			for j := range v {
				w := []float64{v[i], v[j]}
				if i < 5 {
					w[0] -= 0.5
				}
				if j < 5 {
					w[1] -= 0.5
				}
				sum += a[i*6+j] * w[0] * w[1]
			}
		}
		scores = append(scores, sum)
	}
	if ratio := math.Sqrt(stat.Variance(scores, nil) / a.spreadAmong(f)); math.Abs(ratio-1) > 0.1 {
		t.Errorf("scores of subjects spread by %.3f of what is said", ratio)
	}
}

// The two halves of the noise are independent, each with twice the variance, and
// their mean is the release. Standard error of the correlation 2.2 %, of the ratio 2.2 %: with other
// seeds this fails in fewer than one of 10⁴ runs.
func TestNoiseIsSplitIntoIndependentHalves(t *testing.T) {
	l := synthetic.Shape(t, ppca.NoisePerView, 2, 3)
	r := rand.New(rand.NewPCG(7, 21))
	s := synthetic.Must(NewStatistics(l, make2(5), 1))(t)
	rows := cut(l, synthetic.NewTruth(r, l, 1, 0.1).Subjects(r, 200))
	rel := testRelease(t, r, s, rows, 3)
	sums := s.Sums()
	exact := testSum(r, rows, sums[2], 0, s.Contribution(rel.Fine))[0]
	for _, at := range []int{0, 1} { // on the diagonal, and beside it
		var plus, minus []float64
		for range 2000 {
			rel.FineBlocks = testSum(r, rows, sums[2], rel.FineSD, s.Contribution(rel.Fine))
			a, b := rel.splitNoise(r)
			plus, minus = append(plus, a.FineBlocks[0][at]-exact[at]), append(minus, b.FineBlocks[0][at]-exact[at])
			if math.Abs(a.FineBlocks[0][at]+b.FineBlocks[0][at]-2*rel.FineBlocks[0][at]) > 1e-9 {
				t.Fatal("the halves do not have the release as their mean")
			}
			if a.FineSD != rel.FineSD*math.Sqrt2 || b.Fine[0].CountVar != 2*rel.Fine[0].CountVar {
				t.Fatal("the halves do not say how noisy they are")
			}
		}
		sd := rel.FineSD * math.Sqrt2
		if at == 1 {
			sd /= math.Sqrt2
		}
		if c := stat.Correlation(plus, minus, nil); math.Abs(c) > 0.1 {
			t.Errorf("entry %d: the halves have a correlation of %.3f", at, c)
		}
		if ratio := stat.StdDev(plus, nil) / sd; math.Abs(ratio-1) > 0.1 {
			t.Errorf("entry %d: a half has %.3f of the noise that it says", at, ratio)
		}
	}
}
