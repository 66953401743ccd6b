package assess

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/ppca"
)

// MissingnessSums is what a site says of each feature, of the subjects who have its view: score and information
// of the logistic regression of "it is missing" on what the other values predict of it, at no
// effect, in scaled units.
type MissingnessSums struct {
	Score       wire.Vector `cbor:"score"`       // Σ (m − m̄) p, m being 1 where it is missing, p the prediction
	Information wire.Vector `cbor:"information"` // m̄ (1 − m̄) Σ (p − p̄)²
}

// Check says what is wrong with sums that came from elsewhere.
func (s *MissingnessSums) Check(features int) error {
	const what = "sums on missing values"
	return cmp.Or(ppca.Numbers(what, features, math.Inf(-1), s.Score), ppca.Numbers(what, features, 0, s.Information))
}

// predictions gathers a site's subjects.
type predictions struct {
	layout ppca.Layout
	md     *ppca.Model
	kinds  [2][]method.Values // of observed and of missing values, by feature
	views  [2][]method.Values // the same by whether a subject has the view, predicted from other views
	there  []bool             // scratch: by feature
}

// NewPredictions prepares for subjects of a predictor's model.
func NewPredictions(p *ppca.Predictor) *predictions {
	l, md := p.Model()
	out := &predictions{layout: l, md: md, there: make([]bool, md.D)}
	for i := range out.kinds {
		out.kinds[i], out.views[i] = make([]method.Values, md.D), make([]method.Values, md.D)
	}
	return out
}

// Add takes in a subject, of whom the model says this, with its values in the order of the
// posterior's observed features, and x, what [ppca.Posterior.Latent] makes of them. An observed
// value is predicted without itself: it leaves r = t − μ − wᵀx, of variance v, and without it
// ψ r/v would be left of it.
func (p *predictions) Add(post *ppca.Posterior, values, x []float64) {
	clear(p.there)
	for i, j := range post.Observed {
		p.there[j] = true
		prediction := p.expected(j, x)
		off := values[i] - p.md.Mu[j]
		prediction = off - (off-prediction)*p.md.Psi[j]/post.ResidualVar(i)
		if math.Abs(prediction) < ppca.LargestValue {
			p.kinds[0][j].Add(prediction)
		}
	}
	lo := 0
	for _, d := range p.layout.Dims {
		if has := p.there[lo : lo+d]; slices.Contains(has, true) {
			for i, there := range has {
				if j := lo + i; !there && p.md.Psi[j] > 0 {
					p.kinds[1][j].Add(p.expected(j, x))
				}
			}
		}
		lo += d
	}
}

// AddViews takes in what other views predict of the views that a subject has and of those that it lacks: others
// has read the subject, and values and x are as Add has them.
func (p *predictions) AddViews(others *Predictor, values, x []float64) {
	by := make([]float64, len(x))
	for k, given := range others.given {
		lo, hi := p.layout.View(k)
		into := p.views[0]
		switch {
		case given != nil:
			given.Latent(by, others.others(k, values))
		case others.from[k+1] > others.from[k]: // there is no other view
			continue
		default:
			into = p.views[1]
			copy(by, x)
		}
		for j := lo; j < hi; j++ {
			if p.md.Psi[j] > 0 {
				into[j].Add(p.expected(j, by))
			}
		}
	}
}

func (p *predictions) expected(j int, x []float64) (sum float64) {
	for a, w := range p.md.W[j*p.md.LD:][:len(x)] {
		sum += w * x[a]
	}
	return sum
}

// Sums are of the subjects so far, of single values and of whole views; nil if they say nothing, as where none is
// missing.
func (p *predictions) Sums() (cells, views *MissingnessSums) { return sumsOf(p.kinds), sumsOf(p.views) }

func sumsOf(kinds [2][]method.Values) *MissingnessSums {
	d := len(kinds[0])
	s := &MissingnessSums{make(wire.Vector, d), make(wire.Vector, d)}
	for j, missing := range kinds[1] {
		observed := kinds[0][j]
		if missing.N == 0 || observed.N == 0 {
			continue
		}
		away := missing.Mean - observed.Mean
		weight := missing.N * observed.N / (missing.N + observed.N)
		s.Score[j] = weight * away
		s.Information[j] = weight / (missing.N + observed.N) * (missing.Squares + observed.Squares + weight*away*away)
	}
	if slices.Max(s.Information) == 0 {
		return nil
	}
	return s
}

// Selection is how the missing values of one feature go with what others predict, at all sites.
type Selection struct{ Missing, Observed, Weight, Score, Information float64 }

// Add takes in a site's sums of feature j, and how many values are missing and observed there.
func (s *Selection) Add(sums *MissingnessSums, j int, missing, observed float64) {
	s.Missing, s.Observed = s.Missing+missing, s.Observed+observed
	if missing > 0 && observed > 0 {
		s.Weight += missing * observed / (missing + observed)
		s.Score, s.Information = s.Score+sums.Score[j], s.Information+sums.Information[j]
	}
}

// sure is how many standard errors an interval of 90 % reaches.
const sure = 1.645

// Bias is by how many standard deviations the mean of a feature is off, upwards if above 0, if values are missing
// because of what they are; 0 unless they go with their predictions beyond chance of some probability.
//
// Where predictions of missing values are D larger, the values are D/R² larger, R² being the share of the variance that
// is predicted. With a share m of missing values its mean is off by −m D (1/R² − 1). Of normal values no m are further
// from the others than φ(z)/(m(1 − m)) standard deviations, z being the quantile of m: where D/R² is, other values
// decide what is missing.
func (s *Selection) Bias(variance, probability float64) float64 {
	z := s.Score / math.Sqrt(s.Information)
	if !(s.Weight > 0 && variance > 0) || !(2*distuv.UnitNormal.Survival(math.Abs(z)) < probability) {
		return 0
	}
	away := s.Score / s.Weight
	r2 := min(s.Information/s.Weight/variance, 1)
	m := s.Missing / (s.Missing + s.Observed)
	implied := math.Abs(away) / r2 / math.Sqrt(variance)
	if most := distuv.UnitNormal.Prob(distuv.UnitNormal.Quantile(m)) / (m * (1 - m)); implied*(1-sure/math.Abs(z)) >
		most {
		return 0
	}
	return -m * away * (1/r2 - 1) / math.Sqrt(variance)
}

// following is with how many of the rows after it a row is compared, and fewestInOrder how many rows a site needs
// for that.
const following, fewestInOrder = 8, 50

// OrderSums are of a site's scores in the order of its rows, by factor: z of a row about the mean of all, and m the
// mean of the next eight. Of rows in no order Σ z·m is about 0 and has about the variance Σ (z·m)², since no two
// products are of the same pair.
type OrderSums struct {
	Next wire.Vector `cbor:"next"` // Σ z·m
	Own  wire.Vector `cbor:"own"`  // Σ z²
	Vary wire.Vector `cbor:"vary"` // Σ (z·m)²
}

// OrderSumsOf sums up the scores of rows one after the other, q of each; 0 of too few rows.
func OrderSumsOf(scores []float64, q int) *OrderSums {
	s, n := &OrderSums{make(wire.Vector, q), make(wire.Vector, q), make(wire.Vector, q)}, len(scores)/q
	if n < fewestInOrder {
		return s
	}
	for a := range q {
		mean, ahead := 0.0, 0.0
		for i := range n {
			mean += scores[i*q+a] / float64(n)
		}
		for i := range following {
			ahead += scores[(i+1)*q+a]
		}
		for i := range n - following {
			z := scores[i*q+a] - mean
			product := z * ((ahead / following) - mean + z/float64(n))
			s.Next[a], s.Own[a], s.Vary[a] = s.Next[a]+product, s.Own[a]+z*z, s.Vary[a]+product*product
			if ahead -= scores[(i+1)*q+a]; i+1+following < n {
				ahead += scores[(i+1+following)*q+a]
			}
		}
	}
	return s
}

// Check says what is wrong with sums that came from elsewhere.
func (s *OrderSums) Check(q int) error {
	const what = "sums of scores in the order of rows"
	return cmp.Or(ppca.Numbers(what, q, math.Inf(-1), s.Next), ppca.Numbers(what, q, 0, s.Own, s.Vary))
}

// slowly is the least correlation of a score with those that follow that is worth saying.
const slowly = 0.1

// Slow returns the correlation of each factor's scores with the mean of those that follow; 0 where chance makes it
// so high with more than some probability, or where it is too low to matter.
func Slow(sites []*OrderSums, q int, probability float64) []float64 {
	out, z := make([]float64, q), distuv.UnitNormal.Quantile(1-probability/float64(q))
	for a := range out {
		next, own, vary := 0.0, 0.0, 0.0
		for _, s := range sites {
			next, own, vary = next+s.Next[a], own+s.Own[a], vary+s.Vary[a]
		}
		if next > slowly*own && next > z*math.Sqrt(vary) {
			out[a] = min(next/own, 1)
		}
	}
	return out
}
