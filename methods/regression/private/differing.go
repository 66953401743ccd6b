package private

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/internal/wire"
	"parley/methods/regression/predict"
)

// released is a noised sum of one site, or of several.
type released struct {
	Values   wire.Vector `cbor:"values"`
	Variance float64     `cbor:"variance"` // of its noise
}

func (r *released) add(o *released) {
	if r.Values == nil {
		r.Values = make(wire.Vector, len(o.Values))
	}
	for i, v := range o.Values {
		r.Values[i] += v
	}
	r.Variance += o.Variance
}

func (r *released) sd() float64 { return math.Sqrt(r.Variance) }

// lateSums are what the later gradients of each site add up to, and where they were asked for: by
// then the fit is about where it ends.
type lateSums struct {
	Asked []point              `cbor:"asked"`
	Sums  map[string]*released `cbor:"sums"` // Σ over rounds, not in units of the clip
}

// take adds the answers to one task.
func (l *lateSums) take(t point, gradients map[string]*released) {
	l.Asked = append(l.Asked, point{append(wire.Vector(nil), t.Mean...), t.Clip})
	if l.Sums == nil {
		l.Sums = map[string]*released{}
	}
	for site, g := range gradients {
		scaled := &released{make(wire.Vector, len(g.Values)), t.Clip * t.Clip * g.Variance}
		for j, v := range g.Values {
			scaled.Values[j] = t.Clip * v
		}
		if l.Sums[site] == nil {
			l.Sums[site] = new(released)
		}
		l.Sums[site].add(scaled)
	}
}

// surplus is what a site's rows have beyond what the model expects of them, by column: the mean
// over late rounds of its gradients less their clip bias. With the same weights at all sites it
// has the mean Information δ, with one δ for all, and the variance Information + Noise.
type surplus struct {
	Rows        float64
	Sum         []float64
	Information []float64 // diagonal of the site's Hessian
	Noise       []float64 // variance
}

// of makes the surplus of a site out of its sum over late rounds and its own Gram matrix.
func (l *lateSums) of(g *gram, sum *released) *surplus {
	d, rounds := g.Columns.width(), float64(len(l.Asked))
	s := &surplus{g.Rows, make([]float64, d), make([]float64, d), make([]float64, d)}
	bias, wrong := make([]float64, d), make([]float64, d)
	for _, t := range l.Asked {
		at := g.expect(t.Mean, t.Clip, 0)
		off := g.wrong(at, t.Mean, t.Clip)
		for j := range d {
			bias[j] += at.Bias[j] / rounds
			wrong[j] += off.AtVec(j) / rounds
			s.Information[j] += max(at.Hessian.At(j, j), flattest) / rounds
		}
	}
	for j := range d {
		s.Sum[j] = sum.Values[j]/rounds - bias[j]
		s.Noise[j] = sum.Variance/(rounds*rounds) + wrong[j]*wrong[j]
	}
	return s
}

const (
	// falseAlarm bounds the probability with which sites are said to differ that do not.
	falseAlarm = 0.001
	// substantial is the least share of what the features leave that is worth a verdict.
	substantial = 0.01
)

// differ returns by how much each site's surplus in a column is beyond what all have in common, if
// that is more than chance and noise give in one of so many tests, and enough to matter; else nil.
func differ(sites []*surplus, j, tests int) []float64 {
	parts, rows, excess := make([]predict.Part, len(sites)), 0.0, 0.0
	for i, s := range sites {
		if s != nil {
			parts[i] = predict.Part{Sum: s.Sum[j], Information: s.Information[j], Variance: s.Information[j] + s.Noise[j]}
			rows += s.Rows
		}
	}
	by, chi2, free := predict.Apart(parts)
	for i, p := range parts {
		if p.Information > 0 {
			excess += (by[i]*by[i] - p.Variance) / p.Information
		}
	}
	if free < 1 || !(excess > substantial*rows) || !(distuv.ChiSquared{K: free}.Survival(chi2) < falseAlarm/float64(tests)) {
		return nil
	}
	return by
}

// largestOf is the place of the largest number, by its size, and the way in which it is off.
func largestOf(x []float64) (at int, way string) {
	for i, v := range x {
		if math.Abs(v) > math.Abs(x[at]) {
			at = i
		}
	}
	if x[at] < 0 {
		return at, "lower"
	}
	return at, "higher"
}
