package exact

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
)

// terms are the terms of the model that can be left out of it, with their columns of all classes: not the intercept
// and the periods, nor what an interaction is made of.
func (c common) terms() (names []string, columns [][]int) {
	parts := map[string]bool{glm.InterceptGroup: true, glm.PeriodGroup: true}
	for _, t := range c.Encoding.Interactions {
		parts[t[0]], parts[t[1]] = true, true
	}
	groups := c.Encoding.Groups()
	for j, g := range groups {
		if parts[g] {
			continue
		}
		if n := len(names); n == 0 || names[n-1] != g {
			names, columns = append(names, g), append(columns, nil)
		}
		for k := range c.classes() {
			columns[len(names)-1] = append(columns[len(names)-1], k*len(groups)+j)
		}
	}
	return names, columns
}

// tested says whether the ratio of likelihoods tests terms: not of random intercepts, nor where rows are no independent
// draws of the model.
func (c common) tested() bool {
	names, _ := c.terms()
	return len(names) > 0 && !c.Options.Random() && !c.Options.Robust()
}

// nested is a fit without a term between exchanges: BFGS in the metric of the whole fit, whose covariance given that
// the term's weights are 0 is the inverse Hessian until gradients say otherwise.
type nested struct {
	At    wire.Vector   `cbor:"at"`    // where sums are asked for
	Best  wire.Vector   `cbor:"best"`  // the best so far, with its slope
	Slope wire.Vector   `cbor:"slope"` // of Bound
	Bound float64       `cbor:"bound"` // the logarithm of the posterior density at the best, but for a constant
	Steps []wire.Vector `cbor:"steps"` // between the best, and how slopes changed along them
	Bends []wire.Vector `cbor:"bends"`
	// Ratio is twice the logarithm of the ratio of likelihoods.
	Ratio   float64 `cbor:"ratio"`
	Settled bool    `cbor:"settled"`
}

const (
	mostNested    = 12   // exchanges; one where the likelihood is nearly a parabola
	settledNested = 4e-3 // what the next step may change of a ratio for it to be settled, as a share
)

// askNested asks all sites for the likelihood without each term, first at the mode that a parabola about the fit has.
func (c coordinator) askNested(s *state) ([]method.Task, error) {
	points := []glm.MixedPoint{{Weights: s.Fit.At.Mean}}
	_, terms := c.terms()
	for k, columns := range terms {
		if len(s.Ratios) < len(terms) {
			mean, _ := conditional(s.Fit.At.Normal(), columns)
			s.Ratios = append(s.Ratios, nested{At: mean})
		}
		points = append(points, glm.MixedPoint{Weights: s.Ratios[k].At})
	}
	s.Tests++
	return c.askSums(s, taskNested, points)
}

// conditional is the normal density given that some weights are 0: its mean, and its covariance.
func conditional(q glm.Normal, columns []int) (mean []float64, covariance *mat.SymDense) {
	n := len(q.Mean)
	covariance = glm.Symmetric(q.Covariance, n)
	own := glm.Sym(len(columns), func(a, b int) float64 { return covariance.At(columns[a], columns[b]) })
	across, value := mat.NewDense(n, len(columns), nil), mat.NewVecDense(len(columns), nil)
	for a, i := range columns {
		value.SetVec(a, q.Mean[i])
		across.SetCol(a, mat.Row(nil, i, covariance))
	}
	inverse, _ := glm.PseudoInverse(own)
	var by, explained mat.Dense
	by.Mul(across, inverse)
	explained.Mul(&by, across.T())
	var moved mat.VecDense
	moved.MulVec(&by, value)
	for i := range n {
		mean = append(mean, q.Mean[i]-moved.AtVec(i))
		for j := range i + 1 {
			covariance.SetSym(i, j, covariance.At(i, j)-explained.At(i, j))
		}
	}
	for _, i := range columns {
		mean[i] = 0
	}
	return mean, covariance
}

// test takes each fit without a term a step on, and says whether all have settled.
func (c coordinator) test(s *state) (settled bool) {
	q, prior := s.Fit.At.Normal(), c.PriorOf(s.Scale)
	_, terms := c.terms()
	total := c.total(s, taskNested)
	settled = true
	for k, columns := range terms {
		x := &s.Ratios[k]
		if !x.Settled {
			x.take(q, prior, columns, total.At[0].Value, &total.At[1+k])
		}
		settled = settled && x.Settled
	}
	clear(s.Nested)
	return settled
}

// take moves on by the sums at At: value is the log-likelihood of the whole fit.
func (x *nested) take(q glm.Normal, prior glm.Gaussian, columns []int, value float64, sums *rowSums) {
	_, covariance := conditional(q, columns)
	n := len(x.At)
	bound, slope := sums.Value, make(wire.Vector, n)
	for j, l := range prior.Lambda {
		off := x.At[j] - prior.Eta[j]/l
		bound, slope[j] = bound-l*off*off/2, sums.Gradient[j]-l*off
	}
	if len(x.Best) > 0 && !(bound >= x.Bound-1e-9*math.Abs(x.Bound)) {
		floats.Add(x.At, x.Best)
		floats.Scale(0.5, x.At)
		return
	}
	if len(x.Best) > 0 {
		step, bend := floats.SubTo(make([]float64, n), x.At, x.Best), floats.SubTo(make([]float64, n), x.Slope, slope)
		if floats.Dot(step, bend) > 0 {
			x.Steps, x.Bends = append(x.Steps, step), append(x.Bends, bend)
		}
	}
	x.Best, x.Slope, x.Bound = x.At, slope, bound
	along := mat.NewVecDense(n, slices.Clone(slope))
	shares := make([]float64, len(x.Steps)) // the two loops of Nocedal and Wright 2006, algorithm 7.4
	for i := len(x.Steps) - 1; i >= 0; i-- {
		shares[i] = floats.Dot(x.Steps[i], along.RawVector().Data) / floats.Dot(x.Steps[i], x.Bends[i])
		floats.AddScaled(along.RawVector().Data, -shares[i], x.Bends[i])
	}
	step := new(mat.VecDense)
	step.MulVec(covariance, along)
	for i, bend := range x.Bends {
		share := shares[i] - floats.Dot(bend, step.RawVector().Data)/floats.Dot(x.Steps[i], bend)
		floats.AddScaled(step.RawVector().Data, share, x.Steps[i])
	}
	for _, j := range columns {
		step.SetVec(j, 0)
	}
	gain, next := 0.0, make([]float64, n) // of the likelihood, by the parabola
	for j := range n {
		d := step.AtVec(j)
		gain += d*sums.Gradient[j] - d*slope[j]/2 + prior.Lambda[j]*d*d/2
		next[j] = x.At[j] + d
	}
	x.At, x.Ratio = next, max(2*(value-sums.Value-max(gain, 0)), 0)
	x.Settled = mat.Dot(step, mat.NewVecDense(n, slope)) < settledNested*max(x.Ratio, 1)
}

// fewestSites must stay for one to be left out, or for standard errors by sites.
const fewestSites = 3

// siteSums are the sums of sites at the last weights that these were asked at, if there are enough. Of a single
// contribution of all sites there is nothing to tell.
func (c coordinator) siteSums(s *state) (names []string, sums []*rowSums) {
	for _, name := range c.Plan.Sites {
		if own := s.Sums[name]; own != nil {
			names, sums = append(names, name), append(sums, &own.At[0])
		}
	}
	if len(names) < fewestSites || len(s.Fit.Last.Mean) == 0 || !s.Fit.Settled {
		return nil, nil
	}
	return names, sums
}

// bySite is the robust covariance of weights with sites as clusters; nil where they are too few.
func (c coordinator) bySite(s *state) []float64 {
	_, sums := c.siteSums(s)
	if sums == nil {
		return nil
	}
	scatter := predict.NewScatter(c.Weights())
	for _, own := range sums {
		scatter.AddScore(own.Gradient, 1)
	}
	return scatter.Robust(s.Fit.At.Normal(), c.PriorOf(s.Scale))
}

// leftOut shows what the fit would be without each site, by one of Newton's steps from the sums of the others, and what
// it then says of that site's outcomes, by the parabola about the fit, beside the fit to all; nil where that is not
// known.
func (c coordinator) leftOut(s *state, m *fitted.Model) *figure.Table {
	names, sums := c.siteSums(s)
	if names == nil {
		return nil
	}
	t := &figure.Table{ID: "left-out", Title: "Each site left out",
		Caption: "What a fit to the other sites says of a site's outcomes, beside the fit to all: the log-likelihood " +
			"at the estimates, per " + c.Options.Unit() + ". Fits without a site are one of Newton's steps from the " +
			"sums of the others, and their likelihood is that of a parabola. The last columns say which coefficient " +
			"moves most without the site, in its standard errors.",
		Columns: []figure.Column{{Name: "site"}, {Name: "log-likelihood", Format: figure.General},
			{Name: "without the site", Format: figure.General}, {Name: "moves most"},
			{Name: "standard errors", Format: figure.General}}}
	prior, last, p := c.PriorOf(s.Scale), s.Fit.Last.Mean, c.Weights()
	total := &rowSums{Derivatives: *glm.NewDerivatives(p)}
	for _, own := range sums {
		method.AddSums(total, own)
	}
	_, variance := m.Posterior.Moments()
	scale, rows, without := 1.0, float64(total.Rows), 0.0
	if c.Options.Estimated() { // sums are at the noise before the last step
		scale = s.Fit.Last.Noise / s.Fit.At.Noise
	}
	for i, own := range sums {
		rest := *total
		rest.Gradient = floats.SubTo(make([]float64, p), total.Gradient, own.Gradient)
		rest.Information = floats.SubTo(make([]float64, len(total.Information)), total.Information, own.Information)
		step, _, ok := newton(prior, last, rest.times(scale), c.classes())
		if !ok {
			return nil
		}
		value := own.Value + mat.Dot(mat.NewVecDense(p, own.Gradient), step) - mat.Inner(step,
			glm.Symmetric(own.Information, p), step)/2
		without += value
		farthest, most := 0.0, ""
		for j := range m.Effects {
			if moved := (last[j] + step.AtVec(j) - s.Fit.At.Mean[j]) / math.Sqrt(variance[j]); !m.Base(j) &&
				math.Abs(moved) > math.Abs(farthest) {
				farthest, most = moved, m.Effects[j].Label()
			}
		}
		t.Add(names[i], own.Value/float64(own.Rows), value/float64(own.Rows), most, farthest)
	}
	t.Add("all sites", total.Value/rows, without/rows, "", math.NaN())
	return t
}

// changes are tests of whether effects change over time, of each column of features and of all together.
func (c common) changes(s *state, pooled *predict.Assessment) (each []predict.Change, all predict.Change) {
	return pooled.Periods.Changes(c.Encoding.FeatureWidth(), c.PriorOf(s.Scale), pooled.Residuals.Dispersion())
}

// turned says by how many standard errors outcomes at a site go with the features the other way round: those with the
// outcome have lower scores than those without, by far more than chance (Mann and Whitney 1947); or a number's slope by
// what the fit predicts there, beside an intercept of the site's own, is below 0, which one of Newton's steps from the
// site's sums tells.
func (c coordinator) turned(s *state, site string) float64 {
	a, own := s.Reports[site], s.Sums[site]
	switch {
	case a != nil && a.Ranking != nil:
		area := a.Ranking.Area()
		cases, controls := a.Ranking.Classes()
		if a.Periods != nil {
			area = a.Periods.Concordance()
		}
		return (0.5 - area) / math.Sqrt((cases+controls+1)/(12*cases*controls))
	case own != nil && c.Options.Likelihood == glm.LikelihoodLinear && len(s.Fit.Last.Mean) > 0:
		p := c.Weights()
		along, ones := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
		for j, w := range s.Fit.Last.Mean {
			if j < c.Encoding.FeatureWidth() {
				along.SetVec(j, w)
			} else {
				ones.SetVec(j, 1)
			}
		}
		h, g := glm.Symmetric(own.At[0].Information, p), mat.NewVecDense(p, own.At[0].Gradient)
		a, b, d, score := mat.Inner(along, h, along), mat.Inner(along, h, ones), mat.Inner(ones, h, ones),
			mat.Dot(along, g)
		if d > 0 {
			score, a = score-b/d*mat.Dot(ones, g), a-b/d*b
		}
		return -(1 + score/a) * math.Sqrt(a)
	}
	return 0
}

// farTurned is how many there must be.
const farTurned = 4
