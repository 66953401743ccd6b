package glm

import (
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Contextual adds to a model, after its fit and from the same derivatives, a column that is one
// number at each site, such as the site's mean of a feature (Mundlak, Econometrica 1978). At a
// site the column is that of the intercept times the number, and so are derivatives by its weight.
type Contextual struct {
	at     []*conditional // at each point of the grid
	points []MixedPoint
	totals []*Derivatives
	ones   []int            // columns that are 1 together in every row
	sites  [][]*Derivatives // by site, then by point
}

// NewContextual takes what sites answered at the points of a grid over ln τ.
func NewContextual(p Prior, points []MixedPoint, sites [][]*Derivatives, ones []int) (*Contextual, error) {
	c := &Contextual{points: points, sites: sites, ones: ones}
	for k, x := range points {
		d := NewDerivatives(len(x.Weights))
		for _, own := range sites {
			d.Add(own[k])
		}
		p.add(x, d)
		l, err := p.factorise(d)
		if err != nil {
			return nil, err
		}
		c.at, c.totals = append(c.at, l.conditional(d)), append(c.totals, d)
	}
	return c, nil
}

// Add gives the column of these numbers, one for each site, a weight with a flat prior. It returns
// the probability that this weight is on the other side of 0 than its mean, twice, where
// deviations have so many times their variance under the model; and by how many of its standard
// deviations weight j moves. τ is integrated out in both, as the column explains some of it.
func (c *Contextual) Add(numbers []float64, j int, dispersion float64) (p, moved float64) {
	n := len(c.points[0].Weights)
	unit := mat.NewVecDense(n, nil)
	unit.SetVec(j, 1)
	var before, after []atTau
	for k, at := range c.at {
		cross, own, slope := mat.NewVecDense(n, nil), 0.0, 0.0
		for s, d := range c.sites {
			for _, a := range c.ones {
				slope += numbers[s] * d[k].Gradient[a]
				for i := range n {
					cross.SetVec(i, cross.AtVec(i)+numbers[s]*d[k].Curvature[Packed(max(i, a), min(i, a))])
				}
				for _, b := range c.ones {
					own += numbers[s] * numbers[s] * d[k].Curvature[Packed(max(a, b), min(a, b))]
				}
			}
		}
		var along, row mat.VecDense
		// An error says that the matrix is badly conditioned, or what factorise has refused.
		_ = at.weights.SolveVecTo(&along, cross)
		_ = at.weights.SolveVecTo(&row, unit)
		left := own - mat.Dot(cross, &along)
		if !(left > rounding*own) {
			return 1, 0
		}
		slope -= mat.Dot(&along, mat.NewVecDense(n, c.totals[k].Gradient[:n]))
		weight := c.points[k].Weights[j] + at.step[j]
		before = append(before, atTau{evidence: at.evidence(), weight: weight, variance: row.AtVec(j)})
		after = append(after, atTau{evidence: at.evidence() + (slope*slope/left-math.Log(left))/2, weight: weight - along.AtVec(j)*slope/left, deviate: slope / math.Sqrt(left*dispersion)})
	}
	mean, square, below, now := 0.0, 0.0, 0.0, 0.0
	for k, share := range probabilities(before) {
		m := before[k]
		mean += share * m.weight
		square += share * (m.weight*m.weight + m.variance)
	}
	for k, share := range probabilities(after) {
		now += share * after[k].weight
		below += share * distuv.UnitNormal.CDF(-after[k].deviate)
	}
	return 2 * min(below, 1-below), (now - mean) / math.Sqrt(square-mean*mean)
}

// atTau is what is known at a point of the grid: the logarithm of its evidence, a weight, and the
// standard normal deviate of a column's weight.
type atTau struct{ evidence, weight, variance, deviate float64 }

// probabilities are those of points whose ln τ are equally far apart.
func probabilities(all []atTau) (shares []float64) {
	top, sum := math.Inf(-1), 0.0
	for _, m := range all {
		top = max(top, m.evidence)
	}
	for _, m := range all {
		shares = append(shares, math.Exp(m.evidence-top))
		sum += shares[len(shares)-1]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}

// rounding is the share of a column's information below which nothing is left of it.
const rounding = 1e-9
