package exact

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/methods/regression/predict"
)

// fewestSites must stay for one to be left out, or for standard errors by sites.
const fewestSites = 3

// siteSums are the sums of sites at the last weights that these were asked at, if there are enough. Of a single
// contribution of all sites there is nothing to tell.
func (c coordinator) siteSums(s *state) (names []string, sums []*Sums) {
	for _, name := range c.Plan.Sites {
		if own := s.Sums[name]; own != nil {
			names, sums = append(names, name), append(sums, own)
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
		scatter.AddScore(own.Gradient)
	}
	return scatter.Robust(s.Fit.At.normal(), c.PriorOf(s.Scale))
}

// leftOut is what the fit would be without each site, by one of Newton's steps from the sums of the others, and what
// it then says of that site's outcomes, by the parabola about the fit.
func (c coordinator) leftOut(s *state, m *fitted.Model) []fitted.LeftOut {
	names, sums := c.siteSums(s)
	if names == nil {
		return nil
	}
	prior, last, p := c.PriorOf(s.Scale), s.Fit.Last.Mean, c.Weights()
	total := newSums(p)
	for _, own := range sums {
		method.AddSums(total, own)
	}
	_, variance := m.Posterior.Moments()
	scale := 1.0
	if c.estimated() { // sums are at the noise before the last step
		scale = s.Fit.Last.Noise / s.Fit.At.Noise
	}
	var all []fitted.LeftOut
	for i, own := range sums {
		precision, left := make([]float64, len(total.Information)), mat.NewVecDense(p, nil)
		for k, x := range total.Information {
			precision[k] = scale * (x - own.Information[k])
		}
		for j, l := range prior.Lambda {
			precision[glm.Packed(j, j)] += l
			left.SetVec(j, scale*(total.Gradient[j]-own.Gradient[j])-(l*last[j]-prior.Eta[j]))
		}
		glm.Pin(precision, p, c.classes())
		var chol mat.Cholesky
		var step mat.VecDense
		if !chol.Factorize(glm.Symmetric(precision, p)) || !glm.Usable(chol.SolveVecTo(&step, left)) {
			return nil
		}
		value := mat.Dot(mat.NewVecDense(p, own.Gradient), &step) - mat.Inner(&step, glm.Symmetric(own.Information, p), &step)/2
		out := fitted.LeftOut{Site: names[i], Rows: own.Rows, With: own.Value, Without: own.Value + value}
		for j, name := range c.names() {
			if moved := (last[j] + step.AtVec(j) - s.Fit.At.Mean[j]) / math.Sqrt(variance[j]); name != "" && math.Abs(moved) > math.Abs(out.Moved) {
				out.Moved, out.Most = moved, name
			}
		}
		all = append(all, out)
	}
	return all
}

// names are those of all weights that are effects, "" of others.
func (c common) names() (names []string) {
	groups, features := c.Encoding.Groups(), c.Encoding.Features()
	for _, class := range c.Options.Classes() {
		for j, name := range features {
			switch {
			case ofEverybody(groups[j]):
				name = ""
			case class != "":
				name = class + ": " + name
			}
			names = append(names, name)
		}
	}
	return names
}

// reversed says at which site outcomes go with the features the other way round: those with the outcome have lower scores
// than those without, by far more than chance (Mann and Whitney 1947); or a number's slope by what the fit predicts there, beside an
// intercept of the site's own, is below 0, which one of Newton's steps from the site's sums tells.
func (c coordinator) reversed(s *state) (says []string) {
	for _, name := range c.Plan.Sites {
		if z := c.turned(s, name); z > farTurned {
			says = append(says, fmt.Sprintf("At %s outcomes go with the features the other way round: where the fit to all sites predicts more, there is less. So it is where the levels of %s stand the other way round in its data, or its numbers run from good to bad. Ask the site; until it is known, leave it out.", name, c.Options.Outcome.Column))
		}
	}
	return says
}

// farTurned is by how many standard errors a site's scores must be the wrong way.
const farTurned = 4

// turned is by how many standard errors they are.
func (c coordinator) turned(s *state, site string) float64 {
	a, own := s.Reports[site], s.Sums[site]
	switch {
	case a != nil && a.Ranking != nil:
		_, _, area := a.Ranking.ROC()
		cases, controls := a.Ranking.Classes()
		if a.Periods != nil {
			area = a.Periods.Concordance()
		}
		return (0.5 - area) / math.Sqrt((cases+controls+1)/(12*cases*controls))
	case own != nil && c.Options.Likelihood == options.LikelihoodLinear && len(s.Fit.Last.Mean) > 0:
		p, groups := c.Weights(), c.Encoding.Groups()
		along, ones := mat.NewVecDense(p, nil), mat.NewVecDense(p, nil)
		for j, w := range s.Fit.Last.Mean {
			if ofEverybody(groups[j]) {
				ones.SetVec(j, 1)
			} else {
				along.SetVec(j, w)
			}
		}
		h, g := glm.Symmetric(own.Information, p), mat.NewVecDense(p, own.Gradient)
		a, b, d, score := mat.Inner(along, h, along), mat.Inner(along, h, ones), mat.Inner(ones, h, ones), mat.Dot(along, g)
		if d > 0 {
			score, a = score-b/d*mat.Dot(ones, g), a-b/d*b
		}
		return -(1 + score/a) * math.Sqrt(a)
	}
	return 0
}
