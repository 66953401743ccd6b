package gmm

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Predictive is what a sample of parameters says of single rows, of which features may be
// missing: what was observed has the mixture's marginal distribution (Little and Rubin, Statistical
// Analysis with Missing Data, section 11.6). It is not safe for concurrent use.
type Predictive struct {
	p     *Posterior
	seen  []int      // features that were observed in the last row
	parts []marginal // of every draw, its components, given those features
	ready bool
	x     []float64
	joint []float64 // responsibilities of the last row, by draw and component
}

// marginal is a component of a draw in the features that were observed.
type marginal struct {
	l       []float64 // lower Cholesky factor of their covariance
	logNorm float64   // ln π − ½ ln |2πΣ|
}

// Row is what a sample says of one row.
type Row struct {
	Values int // how many features were observed
	// Probability that each component made the row: the mean over the sample of
	// π_k N(x; μ_k, Σ_k)/Σ_j π_j N(x; μ_j, Σ_j); and SD its standard deviation over it.
	Probability, SD []float64
	LogDensity      float64 // ln p(x), of what was observed, in nats; 0 if nothing was
	// Tail is the share of rows that lie as far from the mean of the component that made them,
	// or farther, by (x − μ_k)ᵀ Σ_k⁻¹ (x − μ_k): even on [0, 1] over the mixture's own rows.
	Tail float64
}

// NewPredictive prepares a sample, whose mixtures must satisfy Check.
func NewPredictive(p *Posterior) (*Predictive, error) {
	if len(p.Draws) == 0 || len(p.Draws) != len(p.Weights) {
		return nil, fmt.Errorf("a sample of %d mixtures and %d weights", len(p.Draws), len(p.Weights))
	}
	k, d := p.Draws[0].Components(), p.Draws[0].Dim
	for i, m := range p.Draws {
		if m.Components() != k || m.Dim != d {
			return nil, fmt.Errorf("draw %d has %d components in %d dimensions, and the first %d in %d", i+1, m.Components(), m.Dim, k, d)
		}
	}
	n := len(p.Draws) * k
	return &Predictive{p: p, parts: make([]marginal, n), x: make([]float64, d), joint: make([]float64, n)}, nil
}

// Components returns K.
func (p *Predictive) Components() int { return p.p.Draws[0].Components() }

// Of says what the sample says of a row x. Features that are not finite were not observed.
func (p *Predictive) Of(x []float64) (Row, error) {
	if err := p.condition(x); err != nil {
		return Row{}, err
	}
	k, n := p.Components(), len(p.seen)
	out := Row{Values: n, Probability: make([]float64, k), SD: make([]float64, k), LogDensity: math.Inf(-1)}
	tails := make([]float64, k)
	for s, m := range p.p.Draws {
		total, r := math.Inf(-1), p.joint[s*k:][:k]
		for c := range k {
			at := &p.parts[s*k+c]
			for i, j := range p.seen {
				p.x[i] = x[j] - m.Mean(c)[j]
			}
			Forward(at.l, n, p.x[:n])
			q := Squares(p.x[:n])
			r[c], tails[c] = at.logNorm-q/2, 1
			if n > 0 {
				tails[c] = mathext.GammaIncRegComp(float64(n)/2, min(q/2, math.MaxFloat64))
			}
			total = logAdd(total, r[c])
		}
		share := p.p.Weights[s]
		out.LogDensity = logAdd(out.LogDensity, math.Log(share)+total)
		for c := range k {
			if r[c] = math.Exp(r[c] - total); math.IsInf(total, -1) { // nothing tells: too far from all
				r[c] = m.Weights[c]
			}
			out.Probability[c] += share * r[c]
			out.Tail += share * r[c] * tails[c]
		}
	}
	for s := range p.p.Draws {
		for c, v := range p.joint[s*k:][:k] {
			off := v - out.Probability[c]
			out.SD[c] += p.p.Weights[s] * off * off
		}
	}
	for c, v := range out.SD {
		out.SD[c] = math.Sqrt(v)
	}
	return out, nil
}

// Expect writes what the sample expects of every feature, given the row that [Predictive.Of] was
// last asked of: of one that was observed the mean of the components, each by its probability; of
// one that was not its mean and variance given those that were.
func (p *Predictive) Expect(x, mean, variance []float64) {
	k, n := p.Components(), len(p.seen)
	clear(mean)
	clear(variance)
	cross := make([]float64, n)
	for s, m := range p.p.Draws {
		for c := range k {
			w := p.p.Weights[s] * p.joint[s*k+c]
			mu, cov, l := m.Mean(c), m.Cov(c), p.parts[s*k+c].l
			for i, j := range p.seen {
				p.x[i] = x[j] - mu[j]
			}
			Forward(l, n, p.x[:n])
			for j := range mean {
				if slices.Contains(p.seen, j) {
					mean[j] += w * mu[j]
					continue
				}
				for i, o := range p.seen {
					cross[i] = cov[j*m.Dim+o]
				}
				Forward(l, n, cross)
				at, left := mu[j], cov[j*m.Dim+j]
				for i, v := range cross {
					at += v * p.x[i]
					left -= v * v
				}
				mean[j] += w * at
				variance[j] += w * (left + at*at)
			}
		}
	}
	for j, v := range variance {
		if v > 0 {
			variance[j] = max(v-mean[j]*mean[j], 0)
		}
	}
}

// condition prepares the features that were observed in a row: rows that lack the same follow
// each other, as a rule.
func (p *Predictive) condition(x []float64) error {
	at := 0
	same := p.ready
	for j, v := range x {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		same = same && at < len(p.seen) && p.seen[at] == j
		at++
	}
	if same && at == len(p.seen) {
		return nil
	}
	p.seen, p.ready = p.seen[:0], false
	for j, v := range x {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			p.seen = append(p.seen, j)
		}
	}
	k, n := p.Components(), len(p.seen)
	for s, m := range p.p.Draws {
		for c, w := range m.Weights {
			to := &p.parts[s*k+c]
			to.l = to.l[:0]
			for _, i := range p.seen {
				for _, j := range p.seen {
					to.l = append(to.l, m.Cov(c)[i*m.Dim+j])
				}
			}
			logDet, ok := Cholesky(to.l, n)
			if !ok {
				return fmt.Errorf("draw %d: the covariance of component %d is not positive definite", s+1, c+1)
			}
			to.logNorm = math.Log(w) - (logDet+float64(n)*math.Log(2*math.Pi))/2
		}
	}
	p.ready = true
	return nil
}
