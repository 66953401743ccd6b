package fitted

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/problem"
	"parley/study"
)

// Impute implements [method.Imputer]: for every feature that was not observed
// of a subject, its conditional mean and standard deviation and the central
// interval that holds the value with probability Level. The columns are id,
// view, feature, mean, sd, low and high, in the feature's own unit.
//
// An interval is for one value of one subject, its measurement noise included, and what the
// fit to so many subjects leaves unknown: see [ppca.SamplingTimes].
func (m *Model) Impute(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.ImputeOptions) (int, method.Notes, error) {
	if !(opts.Level > 0 && opts.Level < 1) {
		return 0, nil, problem.Problem{Where: "level", What: fmt.Sprintf("%v is not between 0 and 1", opts.Level),
			Hint: "0.9 for intervals that hold nine values of ten"}
	}
	wanted, err := m.wanted(opts.Views)
	if err != nil {
		return 0, nil, err
	}
	r, notes, err := m.use(data, Population{opts.Site, opts.NewSite})
	if err != nil {
		return 0, nil, err
	}
	d := len(r.features)
	z := mathext.NormalQuantile(0.5 + opts.Level/2)
	w, line := csv.NewWriter(to), []string{"id", "view", "feature", "mean", "sd", "low", "high"}
	w.Write(line) // an error comes back from Error
	mean, variance := make([]float64, d), make([]float64, d)
	written := 0
	_, err = r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Impute(mean, values)
		post.MissingVar(variance)
		for i, j := range post.Missing {
			if !wanted[j] {
				continue
			}
			centre, sd := r.own(j, mean[i]), math.Sqrt(variance[i])/r.scale.Factor[j]
			line = append(line[:0], row.ID, r.features[j].view, r.features[j].Name)
			if err := w.Write(figure.Exact(line, centre, sd, centre-z*sd, centre+z*sd)); err != nil {
				return err
			}
			written++
		}
		return nil
	})
	warnings := m.verdictNotes(func(v *Verdict) bool {
		return slices.ContainsFunc(v.Views, func(name string) bool {
			return len(opts.Views) == 0 || slices.Contains(opts.Views, name)
		})
	})
	w.Flush()
	return written, slices.Concat(warnings, notes, r.notes()), errors.Join(err, w.Error())
}

// verdictNotes are such verdicts.
func (m *Model) verdictNotes(such func(*Verdict) bool) (notes method.Notes) {
	for i := range m.Verdicts {
		if v := &m.Verdicts[i]; such(v) {
			notes.Add(problem.Problem{Where: "model " + m.Study, What: v.Says, Hint: v.Advice})
		}
	}
	return notes
}

// wanted says of each feature whether it is in one of the named views; in any
// if none is named.
func (m *Model) wanted(names []string) ([]bool, error) {
	var known []string
	for _, v := range m.Views {
		known = append(known, v.Name)
	}
	var wrong problem.List
	for _, name := range names {
		if !slices.Contains(known, name) {
			wrong.Add(problem.Problem{Where: "view " + name, What: "the model has no such view",
				Hint: problem.DidYouMean(name, known, "one of "+problem.Names(known))})
		}
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	var wanted []bool
	for _, f := range m.features() {
		wanted = append(wanted, len(names) == 0 || slices.Contains(names, f.view))
	}
	return wanted, nil
}

// Transform implements [method.Transformer]: the posterior of each subject's factors given what was observed of the
// subject, N(M WᵀΨ⁻¹(t − μ), M) with M = (I + WᵀΨ⁻¹W)⁻¹, widened by what the errors of loadings add where these are
// known ([assess.Widen]); the prior without any value, and of a rotated model that of the rotated factors. The columns
// are id, values (how many were observed), factor_1 to factor_q, and their standard deviations sd_1 to sd_q. Verdicts
// that void what the study says of the model are repeated.
func (m *Model) Transform(ctx context.Context, data dataset.Source, to io.Writer,
	opts method.TransformOptions) (int, method.Notes, error) {
	r, notes, err := m.use(data, Population{opts.Site, opts.NewSite})
	if err != nil {
		return 0, nil, err
	}
	q := len(m.Factors)
	w, line := csv.NewWriter(to), transformHeader(q)
	w.Write(line) // an error comes back from Error
	z := make([]float64, q)
	n, err := r.each(ctx, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		cov := m.scoreCovariance(post, z)
		m.Rotation.latent(z)
		line = deviations(figure.Exact(append(line[:0], row.ID, strconv.Itoa(len(values))), z...), cov, q)
		return w.Write(line)
	})
	w.Flush()
	warnings := m.verdictNotes(func(v *Verdict) bool { return len(v.Voids) > 0 })
	return n, slices.Concat(warnings, notes, r.notes()), errors.Join(err, w.Error())
}

func transformHeader(q int) []string {
	header := []string{"id", "values"}
	for _, name := range []string{"factor_%d", "sd_%d"} {
		for a := range q {
			header = append(header, fmt.Sprintf(name, a+1))
		}
	}
	return header
}

// WriteScores writes a line for each subject: the scores, and their standard deviations given what was measured of the
// subject.
func WriteScores(ctx context.Context, p *ppca.Predictor, scale *ppca.Scale, data dataset.Source, to io.Writer) error {
	q := p.Rank()
	w, line, z := csv.NewWriter(to), slices.Delete(transformHeader(q), 1, 2), make([]float64, q)
	w.Write(line) // an error comes back from Error
	err := EachSubject(ctx, p, scale, data, func(row *dataset.Row, post *ppca.Posterior, values []float64) error {
		post.Latent(z, values)
		line = deviations(figure.Exact(append(line[:0], row.ID), z...), post.Cov, q)
		return w.Write(line)
	})
	w.Flush()
	return errors.Join(err, w.Error())
}

// deviations adds the roots of the diagonal of a q × q matrix.
func deviations(line []string, cov []float64, q int) []string {
	for a := range q {
		line = figure.Exact(line, math.Sqrt(cov[a*q+a]))
	}
	return line
}

// Simulate implements [method.Simulator]. The population is one of the plan's
// model, N(μ, W Wᵀ + Ψ), with as many factors. Every feature has a standard
// deviation of an eighth of its public range and a mean within a tenth of the
// range from its middle, so that hardly any value lies outside; without a range
// they are 1 and near 0. Loadings are random, those of factor a with a variance
// in proportion to 1/a, as factors of real data differ in strength. All sites
// draw from one population and have every value of every view, but for views
// that the plan says a site lacks.
func Simulate(set ppca.Frame, held method.Patterns, c method.Simulation) (*method.Simulated, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	p := set.Plan
	population := imagine(p, set.Factors, c)
	// No site has such a name, so these streams are nobody's otherwise.
	seed := func(site string) uint64 { return options.Draws(c.Seed, "simulated "+site, 0).Uint64() }
	all := set.Layout.ViewsOf(set.Layout.AllFeatures())
	of := func(site string, n int, views []int) dataset.Source {
		return method.Drawn{Columns: population.Schema(), N: n, Draw: population.drawer(views),
			Random: func() *rand.Rand { return rand.New(rand.NewPCG(seed(site), 0x70617269)) }} // its own stream
	}
	s := &method.Simulated{Sites: map[string]dataset.Source{}, Held: of("held out", c.Held, all)}
	for _, site := range p.Sites {
		views := all
		if p.Privacy.Differential() {
			views = held.Views(p, site)
		}
		s.Sites[site] = of(site, c.Subjects, views)
	}
	return s, nil
}

// imagine draws a population.
func imagine(p *study.Plan, latent int, c method.Simulation) *Model {
	m := &Model{Factors: make([]float64, latent)}
	r := options.Draws(c.Seed, "simulated", 0)
	for _, v := range p.Views {
		view := ModelView{Name: v.Name}
		for _, f := range v.Features {
			low, high := -4.0, 4.0
			if f.Range != nil {
				low, high = f.Range[0], f.Range[1]
			}
			own := ModelFeature{Name: f.Name, Shift: low/2 + high/2, Factor: 8 / (high - low), Noise: c.Noise}
			own.Mean = 0.8 * (2*r.Float64() - 1) // standard deviations
			sum := 0.0
			for a := range latent {
				w := r.NormFloat64() / math.Sqrt(float64(a+1))
				own.Loadings, sum = append(own.Loadings, w), sum+w*w
			}
			for a := range own.Loadings {
				own.Loadings[a] *= math.Sqrt((1 - c.Noise) / sum)
			}
			view.Features = append(view.Features, own)
		}
		m.Views = append(m.Views, view)
	}
	return m
}

// drawer draws subjects from N(μ, W Wᵀ + Ψ), in the features' own units, with some views. Which views these are does
// not change what is drawn of the others.
func (m *Model) drawer(views []int) func(r *rand.Rand, row *dataset.Row) {
	return func(r *rand.Rand, row *dataset.Row) {
		x := make([]float64, len(m.Factors))
		for a := range x {
			x[a] = r.NormFloat64()
		}
		for k, v := range m.Views {
			values := make([]float64, len(v.Features))
			for c, f := range v.Features {
				z := f.Mean + math.Sqrt(f.Noise)*r.NormFloat64()
				for a, w := range f.Loadings {
					z += w * x[a]
				}
				values[c] = z/f.Factor + f.Shift
			}
			if slices.Contains(views, k) {
				row.Views[k] = values
			}
		}
	}
}
