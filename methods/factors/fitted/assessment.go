package fitted

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/internal/linalg"
	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
)

// Assess says how well a finished model describes a site, whose subjects are these blocks in the
// units of the scale. It reads the rows once more: absolute errors are no function of the
// sufficient statistics.
func Assess(ctx context.Context, set ppca.Frame, site string, t *AssessTask, patterns []ppca.Pattern,
	blocks []ppca.Block, scale *ppca.Scale, data dataset.Source) (*Assessment, error) {
	predictor, model, err := t.Predictor(set.Layout)
	if err != nil {
		return nil, err
	}
	plain := predictor // with the site's mean, and no doubt about it
	if t.Offset != nil {
		if plain, err = ppca.NewPredictor(set.Layout, model); err != nil {
			return nil, err
		}
	}
	x, err := ppca.NewExplained(set.Layout, model, blocks)
	if err != nil {
		return nil, err
	}
	logLik, subjects := x.LogLik, x.Subjects
	if predictor != plain {
		if logLik, subjects, err = predictor.LogLik(blocks); err != nil {
			return nil, err
		}
	}
	q, d := model.Rank, set.Layout.Features()
	a := &Assessment{
		Patterns: ppca.PackPatterns(patterns), LogLik: logLik, Cells: x.Cells, Total: x.Total,
		Residual: wire.Matrix{Rows: x.Views, Cols: q + 1, Data: x.Residual},
		AbsError: make(wire.Vector, x.Views), Mean: make(wire.Vector, q), Cov: make(wire.Vector, q*q),
		FeatureTotal: x.FeatureTotal, FeatureResidual: x.FeatureResidual,
		FeatureSquares: make(wire.Vector, d), FeatureFourths: make(wire.Vector, d),
		LeftOut: assess.NewSums(x.Views), Noise: between.NewSums(x.Views), Outliers: make(wire.Vector, x.Views),
	}
	others := assess.Of(predictor)
	rng := options.Draws(set.Plan.Seed, site, 0)
	view, expected := set.Layout.ViewOf(), make([]float64, d)
	z, own := make([]float64, q), make([]float64, q)
	cells := make(wire.Vector, d)
	missing := assess.NewPredictions(plain)
	var scores []float64
	err = EachSubject(ctx, predictor, scale, data, func(_ *dataset.Row, post *ppca.Posterior, values []float64) error {
		if len(values) == 0 {
			return nil
		}
		a.Expected -= post.Entropy()
		post.Describe(expected, values)
		for i, j := range post.Observed {
			off := values[i] - expected[i]
			a.AbsError[view[j]] += math.Abs(off)
			a.FeatureSquares[j] += off * off
			a.FeatureFourths[j] += off * off * off * off
			cells[j]++
		}
		post.Latent(z, values)
		given := post
		if copy(own, z); plain != predictor {
			if given, err = plain.Given(post.Observed); err != nil {
				return err
			}
			given.Latent(own, values)
		}
		a.Noise.Add(plain, given, values, own)
		missing.Add(given, values, own)
		scores = append(scores, own...)
		for i, u := range z {
			a.Mean[i] += u / subjects
			for j, v := range z {
				a.Cov[i*q+j] += (post.Cov[i*q+j] + u*v) / subjects
			}
		}
		if err := others.Add(a.LeftOut, post.Observed, values, rng); err != nil {
			return err
		}
		if len(patterns) > 1 {
			missing.AddViews(others, own)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for k := range x.Views {
		lo, hi := set.Layout.View(k)
		if slices.Min(cells[lo:hi]) < slices.Max(cells[lo:hi]) {
			a.FeatureCells = cells
		}
	}
	a.Missing, a.Lacking = missing.Sums()
	a.Order, a.Serial = assess.OrderSumsOf(scores, q), stats.SerialSumsOf(scores, q) // which changes them
	for i, u := range a.Mean {
		for j, v := range a.Mean {
			a.Cov[i*q+j] -= u * v
		}
	}
	linalg.Symmetrise(a.Cov, q, q)
	return a, nil
}

// PutSiteNoise puts in how the noise of sites differs.
func (m *Model) PutSiteNoise(sites map[string][]between.Noise) {
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		x := modelSiteNoise{Name: name}
		for _, v := range sites[name] {
			x.Views = append(x.Views, modelViewNoise(v))
		}
		m.SiteNoise = append(m.SiteNoise, x)
	}
}

// NoiseTimes are the factors of the noise variances alone.
func NoiseTimes(noise []between.Noise) (times []float64) {
	for _, v := range noise {
		times = append(times, v.Times)
	}
	return times
}

// noiseAt returns the parameters with the noise of a population.
func (m *Model) noiseAt(p *ppca.Params, l ppca.Layout, who Population) (*ppca.Params, error) {
	var times []float64
	for _, s := range m.SiteNoise {
		for _, v := range s.Views {
			if s.Name == who.Site && !who.New {
				times = append(times, v.Times)
			}
		}
	}
	return between.At(l, p, times)
}

// SiteNoiseSection shows how the noise of sites differs.
func (m *Model) SiteNoiseSection() figure.Section {
	t := figure.Table{ID: "noise-of-sites", Columns: []figure.Column{{Name: "site"}, {Name: "view"},
		{Name: "noise, times the model's"}, {Name: "low"}, {Name: "high"}},
		Caption: "Variances, drawn to those of all sites where few subjects tell, with intervals of 90 %. 1 where " +
			"nothing says that the view's noise differs between sites."}
	for _, s := range m.SiteNoise {
		for k, v := range s.Views {
			t.Add(s.Name, m.Views[k].Name, v.Times, v.Low, v.High)
		}
	}
	return figure.Section{ID: "noise-of-sites", Title: "How the noise of sites differs",
		Items: []figure.Item{{Table: &t}},
		Lead: "Subjects of the sites lie around what the factors say by more at some sites than at others, more than " +
			"chance would have it. What is said of subjects of a site of the study uses that site's own noise; the " +
			"loadings and everything else in this report are those of all sites."}
}

// samplingTimes lists what the sampling of subjects multiplies the variance of predictions of
// each view by; nil where that is not known.
func (m *Model) samplingTimes() (times []float64) {
	for _, v := range m.Views {
		if v.SamplingTimes == 0 {
			return nil
		}
		times = append(times, v.SamplingTimes)
	}
	return times
}

// hasErrors says whether anything is known of how far the loadings that are shown are off: those of the fit's own axes.
func (m *Model) hasErrors() bool { return m.Errors != nil && m.Rotation == nil }

// Unstable numbers the factors, from 1, whose loadings another sample of subjects would not
// show again, because another factor is about as strong: see [assess.Stable].
func (m *Model) Unstable() (factors []int) {
	if !m.hasErrors() {
		return nil
	}
	for a, turn := range m.Errors.Turns {
		if turn > assess.Stable {
			factors = append(factors, a+1)
		}
	}
	return factors
}

// scoreCovariance is that of a subject's factors on the axes that are shown, given its posterior and their mean on the
// fit's own, with what the errors of loadings add where these are known.
func (m *Model) scoreCovariance(post *ppca.Posterior, z []float64) []float64 {
	if m.Errors == nil {
		return m.Rotation.covariance(post.Cov)
	}
	subjects, mean := 0, 0.0
	for _, s := range m.Sites {
		subjects += s.Subjects
	}
	if subjects > 0 && !m.Separate() {
		mean = 1 / float64(subjects)
	}
	return m.Rotation.covariance(assess.Widen(post.Cov, z, len(post.Observed), m.Errors.Tilts, m.Errors.Outside, mean,
		m.Rotation == nil))
}

// unstableNote warns of factors that are not stable; nil if all are.
func (m *Model) unstableNote() *figure.Note {
	var names []string
	for _, a := range m.Unstable() {
		names = append(names, fmt.Sprint(a))
	}
	if len(names) == 0 {
		return nil
	}
	which := "Factor " + names[0] + " is"
	if len(names) > 1 {
		which = "Factors " + strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1] + " are"
	}
	return &figure.Note{Title: which + " not stable", Warning: true,
		Text: "Another factor is about as strong, and these subjects are too few to tell the two apart: another " +
			"sample of subjects would show other loadings, turned among these factors by more than 30° as a rule. " +
			"What the factors explain together, and what they predict, is not touched by that. Do not read such a " +
			"factor's loadings by themselves; a larger study, or fewer factors, may settle them."}
}
