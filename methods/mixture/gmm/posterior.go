package gmm

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Posterior is a weighted sample of parameters, and how it was made.
type Posterior struct {
	Draws   []Mixture `json:"draws" cbor:"draws"`
	Weights []float64 `json:"weights" cbor:"weights"` // sum 1
	// Size is the effective sample size of the weights: see [EffectiveSize].
	Size       float64 `json:"effective_size" cbor:"effective_size"`
	Stages     int     `json:"stages" cbor:"stages"`         // temperatures between prior and posterior
	Acceptance float64 `json:"acceptance" cbor:"acceptance"` // share of moves accepted in the last stage
	// Rivals are other mixtures that a search found, of which one component or more is elsewhere
	// than in the best, by at least half of the distance to its neighbour: by how much their log
	// evidence is below that of the best, the closest first.
	Rivals []float64 `json:"rivals,omitempty" cbor:"rivals,omitempty"`
}

// Check reports what is wrong with a sample from elsewhere, of mixtures of k components in d dimensions.
func (p *Posterior) Check(k, d int) error {
	if n := len(p.Draws); n < 1 || n != len(p.Weights) || p.Stages < 0 || !(p.Acceptance >= 0 && p.Acceptance <= 1) ||
		!(p.Size >= 0 && p.Size <= float64(n)*(1+1e-9)) {
		return fmt.Errorf("a sample of %d draws and %d weights, made in %d stages with an acceptance of %v, has an "+
			"effective size of %v", n, len(p.Weights), p.Stages, p.Acceptance, p.Size)
	}
	sum := 0.0
	for i, m := range p.Draws {
		if m.Components() != k || m.Dim != d {
			return fmt.Errorf("draw %d of a sample has %d components in %d dimensions, want %d in %d", i+1,
				m.Components(), m.Dim, k, d)
		}
		if err := m.Check(); err != nil {
			return fmt.Errorf("draw %d of a sample: %w", i+1, err)
		}
		if !(p.Weights[i] >= 0) {
			return fmt.Errorf("draw %d of a sample has weight %v", i+1, p.Weights[i])
		}
		sum += p.Weights[i]
	}
	if math.Abs(sum-1) > 1e-6 {
		return fmt.Errorf("the weights of a sample sum to %v, not 1", sum)
	}
	return nil
}

// Mean returns the mixture whose parameters are the posterior means of those of
// the draws, whose components are matched.
func (p *Posterior) Mean() Mixture {
	first := p.Draws[0]
	m := NewMixture(first.Components(), first.Dim)
	for i, d := range p.Draws {
		for _, part := range [][2][]float64{{m.Weights, d.Weights}, {m.Means, d.Means}, {m.Covs, d.Covs}} {
			for j, v := range part[1] {
				part[0][j] += p.Weights[i] * v
			}
		}
	}
	for k, w := range m.Weights { // a sum of weights may be 1 and a rounding
		m.Weights[k] = min(w, 1)
	}
	return m
}

// LargestFirst numbers components by their mean weight, for those who read.
func (p *Posterior) LargestFirst() {
	order := BySize(p.Mean().Weights)
	for i, m := range p.Draws {
		p.Draws[i] = m.Reorder(order)
	}
}

// Thin returns at most n draws, which stand for the sample: every one as often as its
// weight says, by systematic resampling.
func (p *Posterior) Thin(n int) *Posterior {
	if len(p.Draws) <= n {
		return p
	}
	out := &Posterior{Stages: p.Stages, Acceptance: p.Acceptance}
	for _, i := range Systematic(p.Weights, n, 0.5) {
		out.Draws, out.Weights = append(out.Draws, p.Draws[i]), append(out.Weights, 1/float64(n))
	}
	out.Size = EffectiveSize(out.Weights)
	return out
}

// Systematic takes n indices by weights that sum to 1, at (i + first)/n of their sum for each i from 0.
func Systematic(weights []float64, n int, first float64) []int {
	out := make([]int, n)
	at, sum := 0, weights[0]
	for i := range out {
		for want := (float64(i) + first) / float64(n); sum < want && at < len(weights)-1; sum += weights[at] {
			at++
		}
		out[i] = at
	}
	return out
}

// BySize lists components, largest weight first.
func BySize(weights []float64) []int {
	order := make([]int, len(weights))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	return order
}

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

// NewPredictive prepares a sample, which must satisfy Check.
func NewPredictive(p *Posterior) *Predictive {
	n, d := len(p.Draws)*p.Draws[0].Components(), p.Draws[0].Dim
	return &Predictive{p: p, parts: make([]marginal, n), x: make([]float64, d), joint: make([]float64, n)}
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

// condition prepares the features that were observed in a row: rows that lack the same follow each other, as a rule.
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
