package verify

import (
	"fmt"

	"parley/internal/vectors"
	"parley/methods/factors/ppca"
)

var factorsFormats = map[string]func([]byte, *vectors.List) error{
	"fedmvppca/one-shot/1":        vectors.Format((*oneShotJSON).verify),
	"fedmvppca/factor-analysis/1": vectors.Format((*factorAnalysisJSON).verify),
}

var (
	// Iterates and messages of the one shot and of the hierarchical rounds.
	tolIterate = vectors.Tolerance{Rel: 1e-8, Floor: 0.1}
	tolOptimum = vectors.Tolerance{Rel: 1e-5, Floor: 0.1}
	tolLogLik  = vectors.Tolerance{Rel: 3e-8} // that of the one shot is of fits to fits
)

// theta is parameters as the files write them: one entry per view, null where
// the centre lacks the view.
type theta struct {
	Mu     [][]float64   `json:"mu"`
	W      [][][]float64 `json:"W"`
	Sigma2 []*float64    `json:"sigma2"`
}

// loadings returns W as d × q by rows, zero for views that are null.
func loadings(l ppca.Layout, q int, w [][][]float64) ([]float64, error) {
	if len(w) != l.Views() {
		return nil, fmt.Errorf("loadings have %d views, the file %d", len(w), l.Views())
	}
	if q < 1 || q > l.Features() {
		return nil, fmt.Errorf("%d factors for %d features", q, l.Features())
	}
	out := make([]float64, 0, l.Features()*q)
	for k, view := range w {
		if view == nil {
			out = append(out, make([]float64, l.Dims[k]*q)...)
			continue
		}
		if len(view) != l.Dims[k] {
			return nil, fmt.Errorf("loadings have %d rows in view %d, want %d", len(view), k, l.Dims[k])
		}
		for _, row := range view {
			if len(row) != q {
				return nil, fmt.Errorf("loadings have a row of %d entries in view %d, want %d", len(row), k, q)
			}
			out = append(out, row...)
		}
	}
	return out, nil
}

// params turns theta into parameters. The means may be left out.
func (t *theta) params(l ppca.Layout, q int) (ppca.Params, error) {
	p := ppca.Params{Rank: q, Mu: make([]float64, l.Features()), Noise: make([]float64, l.Views())}
	var err error
	if p.W, err = loadings(l, q, t.W); err != nil {
		return p, err
	}
	if len(t.Sigma2) != l.Views() || t.Mu != nil && len(t.Mu) != l.Views() {
		return p, fmt.Errorf("parameters of %d means and %d variances for %d views", len(t.Mu),
			len(t.Sigma2), l.Views())
	}
	var views []int
	for k, s := range t.Sigma2 {
		if (s == nil) != (t.W[k] == nil) {
			return p, fmt.Errorf("view %d is null in part", k)
		}
		if s == nil {
			continue
		}
		views = append(views, k)
		p.Noise[k] = *s
		if t.Mu == nil {
			continue
		}
		lo, hi := l.View(k)
		if len(t.Mu[k]) != hi-lo {
			return p, fmt.Errorf("mu has %d entries in view %d, want %d", len(t.Mu[k]), k, hi-lo)
		}
		copy(p.Mu[lo:hi], t.Mu[k])
	}
	p.Features = l.FeaturesOf(views)
	return p, p.Check(l)
}

// compare checks parameters view by view.
func (t *theta) compare(list *vectors.List, entry string, l ppca.Layout, got ppca.Params, tol vectors.Tolerance) error {
	want, err := t.params(l, got.Rank)
	if err != nil {
		return fmt.Errorf("%s: %w", entry, err)
	}
	list.Equal(entry+": features", want.Features, got.Features)
	list.Floats(entry+".mu", want.Mu, got.Mu, tol)
	list.Floats(entry+".W", want.W, got.W, tol)
	list.Floats(entry+".sigma2", want.Noise, got.Noise, tol)
	return nil
}

// flat concatenates rows.
func flat(rows [][]float64) []float64 {
	var out []float64
	for _, r := range rows {
		out = append(out, r...)
	}
	return out
}

// siteRows is one site's rows over its views, concatenated.
type siteRows struct {
	features []int
	rows     [][]float64
}

func newSiteRows(l ppca.Layout, views []int, rows [][]float64) (*siteRows, error) {
	if err := l.CheckViews(views); err != nil {
		return nil, err
	}
	f := l.FeaturesOf(views)
	for n, r := range rows {
		if len(r) != len(f) {
			return nil, fmt.Errorf("row %d has %d values, want %d", n, len(r), len(f))
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("a site without rows")
	}
	return &siteRows{f, rows}, nil
}

// blocks returns the rows as one block through the accumulator, and as the
// other of the two forms.
func (s *siteRows) blocks(l ppca.Layout) (own, other ppca.Block, err error) {
	a := ppca.NewAccumulator(l)
	for _, r := range s.rows {
		views := make([][]float64, l.Views())
		for _, k := range l.ViewsOf(s.features) {
			lo, hi := l.View(k)
			at := len(views[k])
			for i, j := range s.features {
				if j >= lo && j < hi {
					views[k] = append(views[k][:at], r[i])
					at++
				}
			}
		}
		if err := a.Add(views); err != nil {
			return own, other, err
		}
	}
	blocks := a.Blocks()
	if len(blocks) != 1 {
		return own, other, fmt.Errorf("rows of a site observe different features")
	}
	own = blocks[0]
	if own.Scatter == nil {
		return own, own.Dense(), nil
	}
	other = ppca.Block{Features: own.Features, N: own.N, Mean: own.Mean, Factor: flat(s.rows)}
	for i := range other.Factor {
		other.Factor[i] -= own.Mean[i%len(own.Mean)]
	}
	return own, other, nil
}

// tolFactors is wide, because expectation maximisation creeps where noise is by feature.
var tolFactors = vectors.Tolerance{Rel: 1e-4, Floor: 0.1}

type factorAnalysisJSON struct {
	Schema     string      `json:"schema"`
	Subjects   float64     `json:"subjects"`
	Covariance [][]float64 `json:"covariance"` // divisor Subjects
	Fits       []struct {
		Q int `json:"q"`
		optimumJSON
	} `json:"fits"`
}

// verify fits one view with noise by feature, which is maximum-likelihood
// factor analysis.
func (f *factorAnalysisJSON) verify(list *vectors.List) error {
	d := len(f.Covariance)
	l, err := ppca.NewLayout([]int{d}, ppca.NoisePerFeature)
	if err != nil {
		return err
	}
	b := ppca.Block{N: f.Subjects, Mean: make([]float64, d)}
	for i, row := range f.Covariance {
		if len(row) != d {
			return fmt.Errorf("covariance: row %d has %d entries, want %d", i, len(row), d)
		}
		b.Features = append(b.Features, i)
		for _, x := range row {
			b.Scatter = append(b.Scatter, f.Subjects*x)
		}
	}
	for _, want := range f.Fits {
		name := fmt.Sprintf("q=%d", want.Q)
		fit, err := ppca.Fit(l, []ppca.Block{b}, want.Q, nil, ppca.FitOptions{Tol: 1e-13, MaxIter: 20000})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		want.compare(list, name, l, fit, tolFactors)
	}
	return nil
}
