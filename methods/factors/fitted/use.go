package fitted

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/internal/stats"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// LoadModel reads model.json. A model of another format or version is refused
// by name; so is one whose numbers do not fit together.
func LoadModel(data []byte) (*Model, error) {
	return method.DecodeModel(data, (*Model).check, ModelFormats()...)
}

// check says what is wrong with a model that came from elsewhere.
func (m *Model) check() error {
	l, err := m.Layout()
	if err != nil {
		return err
	}
	q := len(m.Factors)
	if err := cmp.Or(
		m.params().Check(l),
		m.scale().Check(l),
		ppca.Finite("strengths of the factors", m.Factors),
		m.Rotation.check(q),
		m.Errors.Check(q),
		ppca.Numbers("directions of new sites' means", l.Features(), math.Inf(-1), m.NewSiteDirections...),
	); err != nil {
		return err
	}
	names, errors := map[string]bool{}, map[bool]int{true: q}[m.Errors != nil] // numbers of a feature
	for _, v := range m.Views {
		if v.Name == "" || names["view "+v.Name] {
			return fmt.Errorf("two views are called %q, or one has no name", v.Name)
		}
		names["view "+v.Name] = true
		if len(v.R2Each) != 0 && len(v.R2Each) != q {
			return fmt.Errorf("view %s: %d shares of variance for %d factors", v.Name, len(v.R2Each), q)
		}
		if err := cmp.Or(
			ppca.Numbers("the variance of predictions, times", 1, 1, []float64{cmp.Or(v.SamplingTimes, 1)}),
			ppca.Numbers("standard deviations between sites", 2, 0,
				[]float64{*cmp.Or(v.LoadingSD, new(float64)), *cmp.Or(v.MeanSD, new(float64))}),
		); err != nil {
			return fmt.Errorf("view %s: %w", v.Name, err)
		}
		for _, f := range v.Features {
			if f.Name == "" || names[f.Name] {
				return fmt.Errorf("two features are called %q, or one has no name", f.Name)
			}
			names[f.Name] = true
			if err := cmp.Or(
				ppca.Numbers("standard errors of loadings", errors, math.Inf(-1), f.LoadingSE, f.StandardisedSE),
				ppca.Numbers("the variance between sites", 2, 0, []float64{f.SiteVariance, f.NewSiteVariance}),
			); err != nil {
				return fmt.Errorf("feature %s: %w", f.Name, err)
			}
			if l.Noise == ppca.NoisePerView && f.Noise != v.Features[0].Noise {
				return fmt.Errorf("view %s has one noise variance by its options, and features with several", v.Name)
			}
		}
	}
	err = cmp.Or(m.checkAdjusted(l.Features()), m.Biases.check(names))
	for i := range m.SiteMeans {
		err = cmp.Or(err, m.SiteMeans[i].check(l.Features(), q))
	}
	for _, s := range m.SiteNoise {
		if len(s.Views) != l.Views() {
			return fmt.Errorf("site %q: noise of %d views, not %d", s.Name, len(s.Views), l.Views())
		}
		if _, wrong := between.At(l, m.params(), NoiseTimes(s.Views)); wrong != nil {
			err = cmp.Or(err, fmt.Errorf("site %q: %w", s.Name, wrong))
		}
	}
	return err
}

// Method implements [method.Model].
func (m *Model) Method() string {
	if m.Published != nil {
		return m.Published.Method
	}
	return "factors"
}

// Schema implements [method.Model]: the views and features in the model's
// order, and the subject columns that the features are adjusted for.
func (m *Model) Schema() dataset.Schema {
	var s dataset.Schema
	for _, v := range m.Views {
		view := dataset.View{Name: v.Name}
		for _, f := range v.Features {
			view.Columns = append(view.Columns, dataset.Column{Name: f.Name, Kind: dataset.Number, Missing: f.Missing})
		}
		s.Views = append(s.Views, view)
	}
	for _, c := range m.Covariates {
		s.Subject = append(s.Subject, dataset.Column{Name: c.Column, Kind: dataset.Label})
	}
	return s
}

// total returns the standard deviation of feature j in scaled units over the
// population that the factors describe, √(Σ w² + ψ): where sites have means of their own,
// that is within a site.
func (f *ModelFeature) total() float64 {
	s := f.Noise
	for _, w := range f.Loadings {
		s += w * w
	}
	return math.Sqrt(s)
}

// overall returns the standard deviation of the feature over the subjects of all sites.
func (f *ModelFeature) overall() float64 { return math.Hypot(f.total(), math.Sqrt(f.SiteVariance)) }

// reader reads subjects under a model, in the units in which they were measured.
type reader struct {
	predictor *ppca.Predictor
	scale     *ppca.Scale
	less      *options.Adjustment // nil where features are adjusted for nothing
}

func newReader(p *ppca.Predictor, scale *ppca.Scale, of []options.Covariate, effects *options.Effects,
	rows dataset.Schema) (*reader, error) {
	less, err := options.Adjusting(of, effects, rows)
	return &reader{p, scale, less}, err
}

// read is what the model says of a subject, and the subject's scaled values, valid until the next. Known says whether
// all that features are adjusted for is.
func (r *reader) read(row *dataset.Row) (post *ppca.Posterior, values []float64, known bool, err error) {
	if known = true; r.less != nil {
		if row, known, err = r.less.Less(row); err != nil {
			return nil, nil, false, err
		}
	}
	if post, values, err = r.predictor.Subject(row.Views, r.scale); err != nil {
		err = fmt.Errorf("subject %q: %w", row.ID, err)
	}
	return post, values, known, err
}

// own brings feature j of the subject read last from scaled to its own units.
func (r *reader) own(j int, z float64) float64 {
	y := z/r.scale.Factor[j] + r.scale.Shift[j]
	if r.less != nil {
		y += r.less.Part[j]
	}
	return y
}

// reader reads the subjects of a population under the model.
func (m *Model) reader(rows dataset.Schema, who Population) (*reader, error) {
	if m.Scaling == ppca.ScaleSiteRange {
		return nil, problem.Problem{Where: "model " + m.Study,
			What: fmt.Sprintf("was fitted with scaling %q: every site had units of its own, and new subjects have none",
				m.Scaling),
			Hint: fmt.Sprintf("fit it with another scaling, such as %s, which uses one minimum and maximum for all; "+
				"each site's scores are in its own report", ppca.ScaleMinMax)}
	}
	p, scale, err := m.PredictorFor(who)
	if err != nil {
		return nil, err
	}
	return newReader(p, scale, m.adjustedFor(), m.effects(), rows)
}

// newcomers reads new subjects under a model.
type newcomers struct {
	*reader
	model    *Model
	oneSite  bool // subjects are of one site
	features []feature
	values   []method.Values // scaled, by feature

	subjects, strange int // read, and of them far from what the model expects
}

// use prepares the model for new subjects of a population.
func (m *Model) use(data dataset.Source, who Population) (*newcomers, method.Notes, error) {
	r, err := m.reader(data.Schema(), who)
	if err != nil {
		return nil, nil, err
	}
	var notes method.Notes
	switch {
	case who.New && who.Site != "":
		err = problem.Problem{Where: "--site", What: "subjects are of a site of the fit, or of a new one",
			Hint: "--site or --new-site, not both"}
	case who.New:
		notes, err = m.spreadNotes()
	case who.Site != "":
		err = m.checkSite(who.Site)
	}
	all := m.features()
	return &newcomers{reader: r, model: m, oneSite: who.Site != "", features: all,
		values: make([]method.Values, len(all))}, notes, err
}

// newSiteVariance is what the noise variance of a view's features grows by at a site that took no part, given what
// sites differ by, E = v_μ + q v_W, and the number C of sites that had the view. A new site's rows are E (1 + 1/C) from
// a mean that is known from C draws. The noise of a fit to the pooled rows holds E (1 − 1/C) of that already, so that
// 2E/C is missing; a model of a typical site holds nothing of it. It is 0 where nothing estimated E. Where sites have
// means of their own, v_μ is not part of it.
func (m *Model) newSiteVariance(v *ModelView) float64 {
	if v.LoadingSD == nil || v.MeanSD == nil {
		return 0
	}
	between := float64(len(m.Factors)) * *v.LoadingSD * *v.LoadingSD
	if !m.Separate() {
		between += *v.MeanSD * *v.MeanSD
	}
	sites := float64(max(1, m.sitesWith(v.Name)))
	if m.Published != nil && m.Published.TypicalSite {
		return between * (1 + 1/sites)
	}
	return between * 2 / sites
}

// spreadNoise adds what sites differ by to the noise.
func (m *Model) spreadNoise(p *ppca.Params, l ppca.Layout) {
	group, j := l.GroupOf(), 0
	for k := range m.Views {
		extra := m.newSiteVariance(&m.Views[k])
		for _, f := range m.Views[k].Features {
			if f.Noise != 0 { // else no site had it
				p.Noise[group[j]] = f.Noise + extra
			}
			j++
		}
	}
}

// spareSampling takes from what sampling multiplies variances by what is added for a new site:
// the larger of the two is enough, as estimates from few sites say too much rather than too little.
func (m *Model) spareSampling(times []float64) {
	for k := range times {
		v := &m.Views[k]
		noise, added, n := 0.0, 0.0, 0.0
		for _, f := range v.Features {
			if f.Noise != 0 {
				noise, added, n = noise+f.Noise, added+f.NewSiteVariance, n+1
			}
		}
		added += n * m.newSiteVariance(v)
		if noise > 0 {
			times[k] = max(1, times[k]*noise/(noise+added))
		}
	}
}

func (m *Model) sitesWith(view string) (n int) {
	for _, s := range m.Sites {
		if slices.Contains(s.Views, view) {
			n++
		}
	}
	return n
}

// each reads the subjects one by one, in bounded memory, and counts them. The values are those of the posterior's
// observed features, in scaled units. It is an error if a subject lacks what the features are adjusted for: nothing is
// expected of such a subject.
func (r *newcomers) each(ctx context.Context, data dataset.Source,
	do func(*dataset.Row, *ppca.Posterior, []float64) error) (subjects int, err error) {
	var lacking []string
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return 0, err
		}
		post, values, known, err := r.read(row)
		if err != nil {
			return 0, err
		}
		if r.subjects++; !known {
			lacking = append(lacking, row.ID)
		}
		if len(lacking) > 0 {
			continue
		}
		if d := distance(post, values); strange(d, len(values)) {
			r.strange++
		}
		for i, j := range post.Observed {
			r.values[j].Add(values[i])
		}
		if err := do(row, post, values); err != nil {
			return 0, err
		}
	}
	switch {
	case len(lacking) > 0:
		err = problem.Problem{Where: "subjects",
			What: fmt.Sprintf("of %d of %d subjects one of %s is not known, which the model is adjusted for: %s",
				len(lacking), r.subjects, options.AdjustedFor(r.model.adjustedFor()), problem.Names(lacking)),
			Hint: "fill in the cells, or leave these subjects out: what is expected of them is not known"}
	case r.subjects == 0:
		err = problem.Problem{Where: "data", What: "there are no subjects in them",
			Hint: "subjects.csv needs a row for each subject"}
	}
	return r.subjects, err
}

// distance is the squared distance δᵀC⁻¹δ of a subject from the model, which is p on average
// over p values.
func distance(post *ppca.Posterior, values []float64) float64 {
	return float64(len(values)) + 2*(-post.LogLik(values)-post.Entropy())
}

// strange says whether a subject of so many values is far from the model: its squared distance
// is more than ten times that which is expected, and beyond what one of a million subjects of
// the model has (χ²).
func strange(distance float64, values int) bool {
	p := float64(values)
	if p == 0 {
		return false
	}
	return distance > 10*p && distance > stats.ChiSquareQuantile(4.753, p)
}

// notes are what readers are told once all subjects have been read.
func (r *newcomers) notes() method.Notes {
	notes := r.oddUnits()
	if r.strange > 0 {
		notes.Add(problem.Problem{Where: "data",
			What: fmt.Sprintf("%d of %d subjects are far from all that the model expects", r.strange, r.subjects),
			Hint: "rely on nothing that is said of them: neither factors nor imputed values; look for wrong units, " +
				"codes for missing values and mixed-up columns"})
	}
	return notes
}

// EachSubject reads the rows with what the model says of each subject: the
// posterior given what was observed, and the scaled values of that. Both, and
// the row, are valid until the next.
func EachSubject(ctx context.Context, p *ppca.Predictor, scale *ppca.Scale, data dataset.Source,
	do func(*dataset.Row, *ppca.Posterior, []float64) error) error {
	r := reader{predictor: p, scale: scale}
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return err
		}
		post, values, _, err := r.read(row)
		if err != nil {
			return err
		}
		if err := do(row, post, values); err != nil {
			return err
		}
	}
	return nil
}
