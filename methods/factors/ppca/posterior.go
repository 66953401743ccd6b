package ppca

import (
	"fmt"
	"slices"

	"parley/internal/linalg"
)

// maxKnown bounds the posteriors that a predictor keeps, by their numbers:
// single missing cells can give every subject a set of observed features of its own.
const maxKnown = 1 << 24

// Predictor answers questions about single subjects under one model, whatever
// they lack. What depends only on which features are observed is worked out
// once per set and kept. It is not safe for concurrent use.
type Predictor struct {
	layout   Layout
	features []int
	md       *described
	known    map[string]*Posterior // by a bit for each feature
	last     *Posterior            // most subjects lack what the one before lacks
	mask     []byte
	values   []float64
	observed []int
}

// NewPredictor checks the parameters and prepares a predictor.
func NewPredictor(l Layout, p *Params) (*Predictor, error) {
	if err := l.Check(); err != nil {
		return nil, err
	}
	if err := p.Check(l); err != nil {
		return nil, err
	}
	md := NewModel(l, p.Rank)
	md.Load(p)
	return PredictorOf(l, md, p.Rank, p.Features), nil
}

// PredictorOf returns a predictor of a model that describes some features, which keeps
// the model. Nothing is checked. The model may have more columns than the rank, and more
// than [Params] can: the first are its factors, and the others add to the covariance of
// a subject's features without being factors of their own.
func PredictorOf(l Layout, md *Model, rank int, features []int) *Predictor {
	for _, j := range without(l.AllFeatures(), features) { // a group's variance is not theirs, which nobody has
		md.Psi[j] = 0
	}
	return &Predictor{layout: l, features: slices.Clone(features),
		md: &described{Model: md, rank: rank, solver: linalg.NewSolver(md.Q, len(features)),
			x: make([]float64, md.Q)},
		known: make(map[string]*Posterior), mask: make([]byte, (md.D+7)/8)}
}

// described is a model and what is not known of it.
type described struct {
	*Model
	rank     int       // of its columns, how many are factors
	doubt    []float64 // see [Predictor.Widen]; nil for none
	sampling []float64 // see [Predictor.Sampled]; nil for none

	solver *linalg.Solver // scratch, for as many rows as there are features
	x      []float64      // Q: scratch
}

// Widen adds to the variance of every prediction of a feature what is not known
// of the model itself, such as what privacy noise did to it: one variance for
// each feature of the layout, or no variances at all.
func (p *Predictor) Widen(variance []float64) error {
	if p.md.doubt = variance; len(variance) == 0 {
		p.md.doubt = nil
		return nil
	}
	return Numbers("variances of predictions", p.layout.Features(), 0, variance)
}

// Rank returns q, the number of factors.
func (p *Predictor) Rank() int { return p.md.rank }

// Model returns the model and its layout, not to be changed.
func (p *Predictor) Model() (Layout, *Model) { return p.layout, p.md.Model }

// Describes says whether the model describes feature j.
func (p *Predictor) Describes(j int) bool { return p.md.Psi[j] > 0 }

// Kept returns how many posteriors the predictor keeps, and how many it may.
func (p *Predictor) Kept() (n, most int) { return len(p.known), maxKnown / (p.md.D * p.md.LD) }

// Given returns what the model says once the given features are observed:
// ascending, all described by the model, possibly none.
func (p *Predictor) Given(features []int) (*Posterior, error) {
	if p.last != nil && slices.Equal(features, p.last.Observed) {
		return p.last, nil
	}
	if len(features) > 0 {
		if err := p.layout.CheckFeatures(features); err != nil {
			return nil, err
		}
		if !ContainsAll(p.features, features) {
			return nil, fmt.Errorf("some of the observed features are not described by the model")
		}
	}
	clear(p.mask)
	for _, j := range features {
		p.mask[j/8] |= 1 << (j % 8)
	}
	if post, ok := p.known[string(p.mask)]; ok {
		p.last = post
		return post, nil
	}
	post, err := newPosterior(p.md, slices.Clone(features), p.features)
	if err != nil {
		return nil, err
	}
	if n, most := p.Kept(); n >= most {
		clear(p.known)
	}
	p.known[string(p.mask)], p.last = post, post
	return post, nil
}

// GivenViews returns what the model says once the features that it describes of some views are observed.
func (p *Predictor) GivenViews(views []int) (*Posterior, error) {
	return p.Given(slices.DeleteFunc(p.layout.FeaturesOf(views), func(j int) bool { return !p.Describes(j) }))
}

// Subject splits one subject's views (NaN or nil where not observed, as in a
// data set's row) into the posterior for what is observed and those values,
// scaled if a scale is given. Features which the model does not describe are
// passed over. The values are valid until the next call.
func (p *Predictor) Subject(views [][]float64, s *Scale) (*Posterior, []float64, error) {
	if err := p.layout.checkSubject(views); err != nil {
		return nil, nil, err
	}
	p.values, p.observed = p.values[:0], p.observed[:0]
	for j, x := range p.layout.Values(views, s) {
		if p.Describes(j) {
			p.values, p.observed = append(p.values, x), append(p.observed, j)
		}
	}
	post, err := p.Given(p.observed)
	return post, p.values, err
}

// LogLik returns the log-likelihood of all subjects in the blocks, natural logarithm with
// all constants, and their number. Each subject is judged by itself, as [Posterior.LogLik]
// does: at one site, what the one says of the site's offset is not used for the next.
func (p *Predictor) LogLik(blocks []Block) (total, subjects float64, err error) {
	if err := p.covers(blocks); err != nil {
		return 0, 0, err
	}
	e := NewEStep(p.md.Q, blocks)
	defer e.Release()
	for i := range blocks {
		if err := e.Run(p.md.Model, &blocks[i]); err != nil {
			return 0, 0, err
		}
		total += e.LogDensity(p.md.Model, &blocks[i])
		subjects += blocks[i].N
	}
	return total, subjects, nil
}

// covers refuses blocks of features that the model does not describe.
func (p *Predictor) covers(blocks []Block) error {
	if err := CheckBlocks(p.layout, blocks); err != nil {
		return err
	}
	if !ContainsAll(p.features, Observed(p.layout, blocks)) {
		return fmt.Errorf("subjects have features that the model does not describe")
	}
	return nil
}

// Posterior is the model conditioned on one set of observed features. The
// values t passed to its methods are those of Observed, in order.
type Posterior struct {
	Observed []int     // features
	Missing  []int     // features of the model which are not observed
	Cov      []float64 // q × q by rows: covariance of the factors

	md       *described
	cov      []float64 // as Cov, of all columns of the model
	gain     []float64 // p × ld: Ψ⁻¹W M; Latent is its transpose times t − μ
	nearest  []float64 // p × ld: W (WᵀW)⁻¹; empty if that does not exist, nil until it is asked for
	constant float64   // p ln 2π + ln |C|
	residual []float64 // p: see [Posterior.ResidualVar]; nil until it is asked for
	expected []float64 // per view: see [Posterior.ExpectedResiduals]; nil until they are asked for
}

// Gain returns the row of Ψ⁻¹W M of the i-th observed feature, q numbers: by how much
// the factors' mean follows its value.
func (p *Posterior) Gain(i int) []float64 { return p.gain[i*p.md.LD:][:p.md.rank] }

func newPosterior(md *described, features, all []int) (*Posterior, error) {
	q, ld, p := md.Q, md.LD, len(features)
	post := &Posterior{Observed: features, Missing: without(all, features), md: md, cov: make([]float64, q*q),
		gain: make([]float64, p*ld)}
	w, v, logs := make([]float64, p*ld), post.gain, linalg.LogSum{Product: 1}
	for i, j := range features {
		copy(w[i*ld:][:ld], md.W[j*ld:])
		for a := range q {
			v[i*ld+a] = w[i*ld+a] / md.Psi[j]
		}
		logs.Add(md.Psi[j])
	}
	post.constant = float64(p)*Ln2Pi + logs.Sum()
	gram := make([]float64, q*ld)
	linalg.MulAdd(gram, w, 1, ld, v, q, p, q)
	linalg.Symmetrise(gram, q, ld)
	prec, m := slices.Clone(gram), make([]float64, q*ld)
	for a := range q {
		prec[a*ld+a]++
	}
	logDet, ok := linalg.Cholesky(prec, q, ld)
	if !ok {
		return nil, ErrCollapsed
	}
	post.constant += logDet
	linalg.CholInverse(m, prec, q, ld)
	for a := range q {
		copy(post.cov[a*q:][:q], m[a*ld:])
	}
	if post.Cov = post.cov; md.rank < q {
		post.Cov = make([]float64, 0, md.rank*md.rank)
		for a := range md.rank {
			post.Cov = append(post.Cov, m[a*ld:][:md.rank]...)
		}
	}
	md.solver.Solve(prec, post.gain, p)
	return post, nil
}

// findNearest works out what brings observed values to the nearest point of the model.
func (p *Posterior) findNearest() {
	q, ld, n := p.md.rank, p.md.LD, len(p.Observed)
	w, gram := make([]float64, n*ld), make([]float64, q*ld)
	for i, j := range p.Observed {
		copy(w[i*ld:][:ld], p.md.W[j*ld:])
	}
	linalg.MulAdd(gram, w, 1, ld, w, q, n, q)
	linalg.Symmetrise(gram, q, ld)
	switch {
	case !determined(gram, q, ld):
		w = w[:0]
	case q == p.md.Q:
		p.md.solver.Solve(gram, w, n)
	default:
		linalg.CholSolveRows(gram, q, ld, w, ld, n)
	}
	p.nearest = w
}

// Entropy is the differential entropy of the observed features in nats: what minus the
// log-likelihood of such a subject is on average, if the model is right.
func (p *Posterior) Entropy() float64 { return (p.constant + float64(len(p.Observed))) / 2 }

// ResidualVar is the variance of what the factors' mean leaves of the i-th observed feature,
// t − W⟨x⟩ − μ, if the model is right: ψ − wᵀMw, M being Cov, and what columns beyond the
// factors add.
func (p *Posterior) ResidualVar(i int) float64 {
	if p.residual == nil {
		p.residual = make([]float64, len(p.Observed))
		q := p.md.rank
		for k, j := range p.Observed {
			w, v := p.md.W[j*p.md.LD:][:p.md.Q], p.md.Psi[j]
			for _, x := range w[q:] {
				v += x * x
			}
			p.residual[k] = v - linalg.Quadratic(p.Cov, q, w[:q], w[:q])
		}
	}
	return p.residual[i]
}

// ExpectedResiduals are Σ_j [Posterior.ResidualVar]/ψ_j over the observed features of each view,
// not to be changed.
func (p *Posterior) ExpectedResiduals(l Layout) []float64 {
	if p.expected == nil {
		p.expected = make([]float64, l.Views())
		view := l.ViewOf()
		for i, j := range p.Observed {
			p.expected[view[j]] += p.ResidualVar(i) / p.md.Psi[j]
		}
	}
	return p.expected
}

// determined factorises a and says whether it is well enough conditioned to
// be solved with.
func determined(a []float64, n, ld int) bool {
	diag := make([]float64, n)
	for i := range n {
		diag[i] = a[i*ld+i]
	}
	if _, ok := linalg.Cholesky(a, n, ld); !ok {
		return false
	}
	for i, x := range diag {
		if r := a[i*ld+i]; r*r*x > 1e12 { // r is 1/√pivot
			return false
		}
	}
	return true
}

// Latent writes the posterior mean of the factors (q).
func (p *Posterior) Latent(dst, t []float64) { p.project(dst[:p.md.rank], p.gain, t) }

// project works out as many columns as dst has room for.
func (p *Posterior) project(dst, gain, t []float64) {
	clear(dst)
	for i, j := range p.Observed {
		y := t[i] - p.md.Mu[j]
		for a, x := range gain[i*p.md.LD:][:len(dst)] {
			dst[a] += x * y
		}
	}
}

// LogLik returns ln N(t; μ, W Wᵀ + Ψ) over the observed features.
func (p *Posterior) LogLik(t []float64) float64 {
	// δᵀC⁻¹δ = δᵀΨ⁻¹(δ − W x), x the posterior mean.
	x := p.md.x
	p.project(x, p.gain, t)
	quad := 0.0
	for i, j := range p.Observed {
		y := t[i] - p.md.Mu[j]
		r := y
		for a, w := range p.md.W[j*p.md.LD:][:p.md.Q] {
			r -= w * x[a]
		}
		quad += y * r / p.md.Psi[j]
	}
	return -0.5 * (p.constant + quad)
}

// Impute writes the conditional mean of the missing features.
func (p *Posterior) Impute(dst, t []float64) {
	x := p.md.x
	p.project(x, p.gain, t)
	p.md.predict(dst, p.Missing, x)
}

// MissingVar writes the conditional variance of each missing feature, the
// same for all subjects with these features observed.
func (p *Posterior) MissingVar(dst []float64) {
	q := p.md.Q
	for i, j := range p.Missing {
		w := p.md.W[j*p.md.LD:][:q]
		dst[i] = p.md.Psi[j] + linalg.Quadratic(p.cov, q, w, w)
		if p.md.sampling != nil {
			dst[i] *= p.md.sampling[j]
		}
		if p.md.doubt != nil {
			dst[i] += p.md.doubt[j]
		}
	}
}

// predict writes W x + μ for some features, with as many columns of W as x has numbers.
func (m *described) predict(dst []float64, features []int, x []float64) {
	for i, j := range features {
		s := m.Mu[j]
		for a, w := range m.W[j*m.LD:][:len(x)] {
			s += w * x[a]
		}
		dst[i] = s
	}
}

// Describe writes how the model describes the observed features: the point W x + μ nearest to the observed values,
// x = (WᵀW)⁻¹Wᵀ(t − μ), with the smallest squared error in scaled units, where all features count alike, and what
// principal components are scored by; and where the observed features do not determine the factors, that of the
// posterior mean, shrunken a little towards the mean. It is the rule for every reconstruction of observed values that
// is shown or scored.
func (p *Posterior) Describe(dst, t []float64) {
	if p.nearest == nil {
		p.findNearest()
	}
	x, gain := p.md.x[:p.md.rank], p.nearest
	if len(gain) == 0 {
		gain = p.gain
	}
	p.project(x, gain, t)
	p.md.predict(dst, p.Observed, x)
}
