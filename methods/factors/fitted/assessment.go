package fitted

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/figure"
	"parley/internal/linalg"
	"parley/internal/stats"
	"parley/internal/wire"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// AssessTask asks how well the finished model describes a site.
type AssessTask struct {
	Scale options.Scale `cbor:"scale"`
	Model ppca.Params   `cbor:"model"`
	// Offset is by how much the site's own means differ from the model's; none where
	// sites are taken for samples of one population.
	Offset *between.SiteOffset `cbor:"offset,omitempty"`
	// Noise is how many times that of the model the noise variance of each view is at the
	// site; none where sites are taken to have the same.
	Noise wire.Vector `cbor:"noise,omitempty"`
}

// Shared opens what sites get of a finished study, with what the model says of their subjects
// and the scale that they are in.
func Shared(l ppca.Layout, data []byte) (t *AssessTask, p *ppca.Predictor, scale *ppca.Scale, err error) {
	t = new(AssessTask)
	if err := wire.Unmarshal(data, t); err != nil {
		return nil, nil, nil, fmt.Errorf("decoding the shared model: %w", err)
	}
	if p, _, err = t.Predictor(l); err == nil {
		scale, err = &t.Scale.Scale, t.Scale.Check(l)
	}
	return t, p, scale, err
}

// Predictor returns what the task's model says of subjects of the site that is asked, and
// the model with the site's own means and noise.
func (t *AssessTask) Predictor(l ppca.Layout) (*ppca.Predictor, *ppca.Params, error) {
	if err := t.Model.Check(l); err != nil {
		return nil, nil, err
	}
	own := t.Model.Clone()
	model, err := between.At(l, &own, t.Noise)
	if err != nil {
		return nil, nil, err
	}
	var p *ppca.Predictor
	if t.Offset == nil {
		p, err = ppca.NewPredictor(l, model)
	} else if p, err = between.AtSite(l, model, t.Offset); err == nil {
		for _, j := range model.Features {
			model.Mu[j] += t.Offset.Mean[j]
		}
	}
	return p, model, err
}

// Assessment is what a site says of the finished model. All sums run over the
// site's subjects, in scaled units.
type Assessment struct {
	ppca.Explained
	Patterns []ppca.Pattern `cbor:"patterns"`
	LogLik   float64        `cbor:"log_lik"`  // summed over subjects
	Expected float64        `cbor:"expected"` // what LogLik is on average, if the model is right
	Mean     wire.Vector    `cbor:"mean"`     // of the subjects' factors: q
	Cov      wire.Vector    `cbor:"cov"`      // and their covariance: q × q by rows
	// Of each feature, sums over subjects of squares of what the model leaves, and of their squares.
	FeatureSquares wire.Vector  `cbor:"feature_squares"`
	FeatureFourths wire.Vector  `cbor:"feature_fourths"`
	FeatureCells   wire.Vector  `cbor:"feature_cells"` // values of each feature
	LeftOut        *assess.Sums `cbor:"left_out"`
	// Missing is how missing values go with what others predict of them; nil where none is missing.
	Missing *assess.MissingnessSums `cbor:"missing,omitempty"`
	// Lacking is the same of whole views, by feature; nil where all subjects have the same views.
	Lacking *assess.MissingnessSums `cbor:"lacking,omitempty"`
	// Noise is what the residuals show of the site's own noise.
	Noise *between.Sums `cbor:"noise"`
	// Serial is how scores go with those of the subject whose id is next.
	Serial stats.SerialSums `cbor:"serial"`
	// Order is how scores change along the rows; nil where the method does not ask for it.
	Order *assess.OrderSums `cbor:"order,omitempty"`
	// Subjects who were left out as outliers in each view, and in any.
	Outliers wire.Vector `cbor:"outliers"`
	Outlying float64     `cbor:"outlying"`
}

// Check refuses what no site could say of a model of q factors.
func (a *Assessment) Check(l ppca.Layout, q int) error {
	views, d := l.Views(), l.Features()
	switch {
	case a.Residual.Rows != views || a.Residual.Cols != q+1:
		return fmt.Errorf("%d × %d residuals for %d views and %d factors", a.Residual.Rows, a.Residual.Cols, views, q)
	case a.LeftOut == nil || a.Noise == nil || !a.Serial.Usable():
		return fmt.Errorf("no sums of views left out, of residuals, or of scores and the next ones")
	}
	err := cmp.Or(ppca.CheckPatterns(a.Patterns, l),
		ppca.Finite("log-likelihood", []float64{a.LogLik, a.Expected}),
		ppca.Numbers("outliers", views, 0, a.Outliers),
		ppca.Counts("outliers", []float64{a.Outlying}, ppca.LargestCount),
		ppca.Counts("outliers of a view", a.Outliers, a.Outlying),
		a.Explained.Check(l), a.Noise.Check(views), a.LeftOut.Check(views),
		ppca.Counts("values", a.Cells, ppca.MaxFeatures*ppca.LargestCount),
		ppca.Numbers("sums of a feature", d, 0, a.FeatureCells, a.FeatureSquares, a.FeatureFourths),
		ppca.Counts("values of a feature", a.FeatureCells, ppca.LargestCount),
		ppca.CheckFactors(q, a.Mean, a.Cov))
	if err != nil {
		return err
	}
	if a.Order != nil {
		err = a.Order.Check(q)
	}
	for _, x := range []*assess.MissingnessSums{a.Missing, a.Lacking} {
		if x != nil {
			err = cmp.Or(err, x.Check(d))
		}
	}
	if err != nil {
		return err
	}
	for k, n := range a.Cells {
		if n == 0 && a.Total[k] != 0 {
			return fmt.Errorf("sums of squares of view %d, of which there are no values", k)
		}
	}
	if floats.Sum(a.Cells) < 1 {
		return fmt.Errorf("subjects without a single value")
	}
	return nil
}

// Subjects counts those that have any value.
func (a *Assessment) Subjects() (n int) {
	for _, p := range a.Patterns {
		n += p.Subjects
	}
	return n
}

// Together adds up what sites say, but for the factors.
func Together(sites []*Assessment) *Assessment {
	sum := &Assessment{}
	var explained []*ppca.Explained
	for _, a := range sites {
		explained = append(explained, &a.Explained)
		sum.Patterns = append(sum.Patterns, a.Patterns...)
		sum.LogLik += a.LogLik
	}
	sum.Explained = *explained[0].Plus(explained[1:]...)
	return sum
}

// SayAssessment adds the numbers of an [Assessment] to what is released: upper bounds, for a site that has every
// view, whatever cells are missing.
func SayAssessment(r *privacy.Request, s ppca.Frame) {
	d, q, k := s.Layout.Features(), s.Factors, s.Layout.Views()
	r.Say((2+k)<<min(k, 16), "number of subjects and share of cells observed, per pattern of present views")
	r.Say(k*(q+3), "number of values and sums of squares, total and unexplained, per view and factor")
	r.Say(4*d, "per feature number of values, sum of squares, and sums of squares and of fourth powers of what is "+
		"unexplained of single subjects")
	r.Say(assess.Values(k), "for each view, predicted from the subjects' other views: number of values, sums of "+
		"squared errors, number of values in intervals of 90 %, and how much subjects differ in these")
	r.Say(between.Values(k), "for each view: number of subjects, and sums of their squared residuals in units of what "+
		"the model expects, and of the squares of these")
	r.Say(q*(q+1), "mean and covariance of the factors")
	r.Say(2, "log-likelihood of the site's subjects, and what the model expects of as many")
	r.Say(4*d, "per feature score and information of whether a value, or its whole view, is missing on what the "+
		"subject's others predict of it")
	r.Say(3+3*q, "how scores go with those of the next rows: sums of products, of squares, and of the squares of "+
		"products, for all factors and for each")
	r.Say(k+1, "number of subjects who were left out as outliers, and of them in each view")
}

// Assess says how well a finished model describes a site, whose subjects are these blocks in the
// units of the scale. It reads the rows once more: how single subjects lie is no function of the
// sufficient statistics.
func Assess(ctx context.Context, set ppca.Frame, t *AssessTask, patterns []ppca.Pattern, blocks []ppca.Block,
	scale *ppca.Scale, data dataset.Source) (*Assessment, error) {
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
	x, logLik, subjects, err := ppca.NewExplained(set.Layout, model, blocks)
	if err != nil {
		return nil, err
	}
	if predictor != plain {
		if logLik, subjects, err = predictor.LogLik(blocks); err != nil {
			return nil, err
		}
	}
	q, d, views := model.Rank, set.Layout.Features(), set.Layout.Views()
	a := &Assessment{
		Explained: *x, Patterns: patterns, LogLik: logLik,
		Mean: make(wire.Vector, q), Cov: make(wire.Vector, q*q),
		FeatureCells: make(wire.Vector, d), FeatureSquares: make(wire.Vector, d), FeatureFourths: make(wire.Vector, d),
		LeftOut: assess.NewSums(views), Noise: between.NewSums(views), Outliers: make(wire.Vector, views),
	}
	others := assess.Of(predictor)
	expected := make([]float64, d)
	z, own := make([]float64, q), make([]float64, q)
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
			a.FeatureSquares[j] += off * off
			a.FeatureFourths[j] += off * off * off * off
			a.FeatureCells[j]++
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
		if err := others.Add(a.LeftOut, post.Observed, values); err != nil {
			return err
		}
		if len(patterns) > 1 {
			missing.AddViews(others, values, own)
		}
		return nil
	})
	if err != nil {
		return nil, err
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
		m.SiteNoise = append(m.SiteNoise, modelSiteNoise{name, sites[name]})
	}
}

// noiseAt returns the parameters with the noise of a population.
func (m *Model) noiseAt(p *ppca.Params, l ppca.Layout, who Population) (*ppca.Params, error) {
	var times []float64
	for _, s := range m.SiteNoise {
		if s.Name == who.Site && !who.New {
			times = NoiseTimes(s.Views)
		}
	}
	return between.At(l, p, times)
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

// unstableNote warns of factors whose loadings another sample of subjects would not show again, because another factor
// is about as strong ([assess.Stable]); nil if there are none.
func (m *Model) unstableNote() *figure.Note {
	var names []string
	for a := 0; m.hasErrors() && a < len(m.Errors.Turns); a++ {
		if m.Errors.Turns[a] > assess.Stable {
			names = append(names, fmt.Sprint(a+1))
		}
	}
	if names == nil {
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
