package fedmvppca

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
	"parley/privacy"
	"parley/study"
)

// The tasks, in the words that progress and logs show.
const (
	taskScale   = "scale"   // sums for a common scale
	taskIterate = "iterate" // a round in clear
	taskClip    = "clip"    // a private round
	taskAssess  = "assess"  // how well the model describes the site
)

// scaleTask asks for the sums that the plan's scaling needs.
type scaleTask struct{}

// iterateTask asks for a round.
type iterateTask struct {
	Scale ppca.Scale   `cbor:"scale"`
	Round int          `cbor:"round"` // from 1; it seeds what is drawn
	Prior *PackedPrior `cbor:"prior"` // none in a first round without a prior
}

// iterateAnswer is what a site found in a round in clear.
type iterateAnswer struct {
	Params packedParams `cbor:"params"`
}

func (a *iterateAnswer) check(set setup) error {
	p, err := a.Params.unpack(set.Layout)
	if err != nil {
		return err
	}
	if p.Rank != set.own.Latent {
		return fmt.Errorf("%d factors, not %d", p.Rank, set.own.Latent)
	}
	for k := range set.Layout.Views() {
		if p.Noise[k] != 0 && !ppca.ContainsAll(p.Features, set.Layout.FeaturesOf([]int{k})) {
			return fmt.Errorf("a part of view %s, where the published method knows whole views", set.Plan.Views[k].Name)
		}
	}
	return cmp.Or(ppca.Within("loadings", p.W, ppca.LargestValue), ppca.Within("means", p.Mu, ppca.LargestValue),
		measuredNoise(set.Layout, p))
}

// leastVariance is that of what a site says is a variance of its values.
const leastVariance = 1e-90

// measuredNoise refuses variances that no measured values have.
func measuredNoise(l ppca.Layout, p *ppca.Params) (err error) {
	for k, used := range p.Groups(l) {
		if used {
			err = cmp.Or(err, ppca.Between("noise variances", 1, leastVariance, ppca.LargestValue*ppca.LargestValue,
				p.Noise[k:k+1]))
		}
	}
	return err
}

// packedParams are [ppca.Params] as they travel: only what is described, as of a site that lacks a view.
type packedParams struct {
	Features []int       `cbor:"features"` // p
	W        wire.Matrix `cbor:"w"`        // p × q
	Mu       wire.Vector `cbor:"mu"`       // p
	Noise    wire.Vector `cbor:"noise"`    // of the groups that these have
}

func packParams(l ppca.Layout, p *ppca.Params) packedParams {
	m := packedParams{Features: p.Features, W: wire.Matrix{Rows: len(p.Features), Cols: p.Rank}}
	for _, j := range p.Features {
		m.W.Data = append(m.W.Data, p.W[j*p.Rank:][:p.Rank]...)
		m.Mu = append(m.Mu, p.Mu[j])
	}
	for g, used := range p.Groups(l) {
		if used {
			m.Noise = append(m.Noise, p.Noise[g])
		}
	}
	return m
}

// unpack is the inverse of packParams; it refuses what does not fit the layout.
func (m *packedParams) unpack(l ppca.Layout) (*ppca.Params, error) {
	if err := l.CheckFeatures(m.Features); err != nil {
		return nil, err
	}
	d, n, groups := l.Features(), len(m.Features), 0
	p := &ppca.Params{Features: m.Features, Rank: m.W.Cols, Mu: make(wire.Vector, d),
		Noise: make(wire.Vector, l.Groups())}
	used := p.Groups(l)
	for _, is := range used {
		if is {
			groups++
		}
	}
	if p.Rank < 1 || p.Rank > d || m.W.Rows != n || len(m.W.Data) != n*p.Rank || len(m.Mu) != n ||
		len(m.Noise) != groups {
		return nil, fmt.Errorf("parameters: %d × %d loadings, %d means and %d noise variances of %d features", m.W.Rows,
			p.Rank, len(m.Mu), len(m.Noise), n)
	}
	p.W = make(wire.Vector, d*p.Rank)
	for i, j := range m.Features {
		copy(p.W[j*p.Rank:][:p.Rank], m.W.Data[i*p.Rank:])
		p.Mu[j] = m.Mu[i]
	}
	at := 0
	for g, is := range used {
		if is {
			p.Noise[g] = m.Noise[at]
			at++
		}
	}
	return p, p.Check(l)
}

// half is that at one site. Between tasks it remembers only what one pass over the same
// rows gives again.
type half struct {
	setup
	name string
	// releases is what the site releases in a private round; nil of a plan without protection.
	releases *siteReleases
	seen     *ppca.RowSums
}

func newSite(p *study.Plan, name string) (*half, error) {
	set, err := setUp(p)
	if err != nil {
		return nil, err
	}
	h := &half{setup: set, name: name}
	if set.private() {
		h.releases, err = newReleases(set, name)
	}
	return h, err
}

// times is how often a task of a kind can come up in the plan's study.
func (h *half) times(kind string) int {
	clear, private := h.own.Rounds, 0
	if h.private() {
		if clear, private = 0, h.own.Rounds; h.own.firstInClear() {
			clear, private = 1, h.own.Rounds-1
		}
	}
	switch {
	case kind == taskIterate:
		return clear
	case kind == taskClip:
		return private
	case !h.private() && (kind == taskAssess || kind == taskScale && h.Pools()):
		return 1
	}
	return 0
}

// request is what a task of a kind releases.
func (h *half) request(kind string) privacy.Request {
	r := privacy.Request{Protection: privacy.Unprotected}
	switch kind {
	case taskClip:
		return h.releases.request()
	case taskScale:
		r.Say(h.Said())
	case taskAssess:
		fitted.SayAssessment(&r, h.Frame)
	default:
		r.Say(h.Layout.Features()*(h.own.Latent+2)+h.Layout.Views(), "loadings, means and noise variances of the "+
			"site, and which features it has")
	}
	return r
}

// Run implements [method.Site]. A task brings the coordinator's state and chooses nothing.
func (h *half) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	if h.times(t.Kind) == 0 {
		return method.Answer{}, fmt.Errorf("the plan has no task %q", t.Kind)
	}
	answer, err := h.answer(ctx, t, s)
	if err != nil {
		return method.Answer{}, err
	}
	return method.AnswerTask(t, answer, nil)
}

// answer is what a site says; nil where noised sums are all of it.
func (h *half) answer(ctx context.Context, t method.Task, s *privacy.Session) (any, error) {
	if t.Kind == taskClip {
		task := new(iterateTask)
		if err := method.OpenTask(t, task); err != nil {
			return nil, err
		}
		return nil, h.release(ctx, task, s)
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	sums, err := h.read(ctx, data)
	if err != nil {
		return nil, err
	}
	switch t.Kind {
	case taskScale:
		if err := method.OpenTask(t, new(scaleTask)); err != nil {
			return nil, err
		}
		return sums.Said(h.Frame), nil
	case taskAssess:
		task := new(fitted.AssessTask)
		if err := method.OpenTask(t, task); err != nil {
			return nil, err
		}
		blocks, scale, err := h.scaled(sums, &task.Scale.Scale)
		if err = cmp.Or(err, h.checkRank(task.Model.Rank)); err != nil {
			return nil, err
		}
		a, err := fitted.Assess(ctx, h.Frame, task, sums.Patterns, blocks, scale, data)
		if err == nil {
			a.Order, a.Lacking = nil, nil // of which this method says nothing
		}
		return a, err
	}
	task := new(iterateTask)
	if err := method.OpenTask(t, task); err != nil {
		return nil, err
	}
	found, err := h.iterate(task, sums)
	if err != nil {
		return nil, err
	}
	return &iterateAnswer{Params: packParams(h.Layout, found)}, nil
}

// read makes the one pass over the site's rows, once.
func (h *half) read(ctx context.Context, data dataset.Source) (_ *ppca.RowSums, err error) {
	if h.seen == nil {
		if h.releases != nil {
			data = dataset.Derive(data, data.Schema(), func() func(*dataset.Row) *dataset.Row {
				return func(row *dataset.Row) *dataset.Row {
					own := *row
					own.Views = h.releases.held(row.Views)
					return &own
				}
			})
		}
		h.seen, err = ppca.Read(ctx, h.Layout, data)
	}
	return h.seen, err
}

// scaled returns the blocks in the units that a task asks for, or in the
// site's own where the plan says so.
func (h *half) scaled(sums *ppca.RowSums, scale *ppca.Scale) ([]ppca.Block, *ppca.Scale, error) {
	if h.own.Scaling == ppca.ScaleSiteRange {
		scale = h.ownRange(sums)
	}
	if err := scale.Check(h.Layout); err != nil {
		return nil, nil, err
	}
	return sums.In(scale), scale, nil
}

// ownRange is the scale of a site by itself; a feature that it lacks or that
// does not vary there is left alone.
func (h *half) ownRange(sums *ppca.RowSums) *ppca.Scale {
	s, out := sums.Extremes, ppca.StartScale(h.Frame)
	for j := range out.Factor {
		if s.N[j] > 0 && s.B[j] > s.A[j] {
			out.Shift[j], out.Factor[j] = s.A[j], 1/(s.B[j]-s.A[j])
		}
	}
	return out
}

// release answers a private round. What is wrong with the task shows; what is wrong with
// the rows does not.
func (h *half) release(ctx context.Context, task *iterateTask, s *privacy.Session) error {
	if task.Prior == nil {
		return fmt.Errorf("task %q has no prior to clip around", taskClip)
	}
	prior, err := task.Prior.unpack(h.Layout)
	if err != nil {
		return err
	}
	if err := h.checkModel(prior); err != nil {
		return err
	}
	if err := task.Scale.Check(h.Layout); err != nil {
		return err
	}
	if err := h.checkRound(task); err != nil {
		return err
	}
	return h.releases.release(ctx, s, prior, func(data dataset.Source) (*ppca.Params, error) {
		sums, err := h.read(ctx, data)
		if err != nil {
			return nil, err
		}
		return h.iterate(task, sums)
	})
}

// iterate runs a round on the site's rows.
func (h *half) iterate(t *iterateTask, sums *ppca.RowSums) (*ppca.Params, error) {
	blocks, _, err := h.scaled(sums, &t.Scale)
	if err != nil {
		return nil, err
	}
	if err := h.checkRound(t); err != nil {
		return nil, err
	}
	q, d := h.own.Latent, h.Layout.Features()
	rng := method.Draws("mvppca %d %q %d", h.Plan.Seed, h.name, t.Round)
	w, noise := make([]float64, d*q), make([]float64, h.Layout.Views())
	var prior *Prior
	switch {
	case t.Prior == nil: // the authors' later code starts like this
		for i := range w {
			w[i] = rng.Float64()*4 - 2
		}
		for k := range noise {
			noise[k] = 0.1 + 0.4*rng.Float64()
		}
	default:
		if prior, err = t.Prior.unpack(h.Layout); err != nil {
			return nil, err
		}
		if err := h.checkRank(prior.Rank); err != nil {
			return nil, err
		}
		copy(w, prior.W)
		copy(noise, prior.Noise)
		if h.own.Restart == "draw" {
			drawStart(h.Layout, prior, rng, w, noise)
		}
	}
	it, err := newEM(h.Layout, blocks, q, w, noise)
	if err != nil {
		return nil, err
	}
	for range h.own.iterationsIn(t.Round, h.name) {
		if err := it.step(prior); err != nil {
			return nil, err
		}
	}
	p := it.params()
	return &p, nil
}

// checkRound refuses rounds that the plan does not have: what is drawn in one
// follows from its number.
func (h *half) checkRound(t *iterateTask) error {
	if t.Round < 1 || t.Round > h.own.Rounds {
		return fmt.Errorf("round %d, and the plan has %d", t.Round, h.own.Rounds)
	}
	return nil
}

// drawStart draws θ_c from P(θ_c | θ̃), equations (5) and (6); μ needs no start.
func drawStart(l ppca.Layout, prior *Prior, rng *rand.Rand, w, noise []float64) {
	q := prior.Rank
	for k := range l.Views() {
		lo, hi := l.View(k)
		sd := math.Sqrt(prior.VarW[k])
		for i := lo * q; i < hi*q; i++ {
			w[i] += sd * rng.NormFloat64()
		}
		if prior.Alpha[k] > 0 {
			noise[k] = distuv.InverseGamma{Alpha: prior.Alpha[k], Beta: prior.Beta[k], Src: rng}.Rand()
		}
	}
}

// Report projects the site's own subjects on the factors. It is made at the
// site, for the site, from the shared model and its own rows.
func (h *half) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	_, predictor, scale, err := fitted.Shared(h.Layout, shared)
	if err != nil {
		return nil, err
	}
	if h.own.Scaling == ppca.ScaleSiteRange {
		sums, err := h.read(ctx, data)
		if err != nil {
			return nil, err
		}
		scale = h.ownRange(sums)
	}
	return report.Subjects(ctx, predictor, false, scale, data)
}
