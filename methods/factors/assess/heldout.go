package assess

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/internal/linalg"
	"parley/internal/wire"
	"parley/methods/factors/ppca"
)

// HeldOut says how well each view is predicted from the others for subjects who took no part in the fit, by
// the sums of groups of them that were left out in turn. All vectors are by view.
type HeldOut struct {
	Cells   wire.Vector `cbor:"cells"`   // values predicted
	Error   wire.Vector `cbor:"error"`   // Σ (value − prediction)²
	Squares wire.Vector `cbor:"squares"` // Σ (value − mean)²
	GainSE  wire.Vector `cbor:"gain_se"` // standard error of [HeldOut.Gain], by how tenths differ
	// Times is how many times as large as the model says the squared error is, 1 at least.
	Times wire.Vector `cbor:"times"`
	// Shift is by how much intervals of 90 % that are as wide as the squared error has it hold more of these
	// subjects' values than intervals without hold of those whom the model was fitted to, if values are normal.
	Shift wire.Vector `cbor:"shift"`
	// Errors are those of the loadings.
	Errors *Errors `cbor:"errors"`
}

// Gain is the share of the squared error of "everybody has the mean" that the prediction takes away; NaN
// where nobody has the view and another.
func (h *HeldOut) Gain(k int) float64 { return 1 - h.Error[k]/h.Squares[k] }

// hidden is how well a model predicts each view of some subjects from their other views, by their sums.
type hidden struct {
	cells, failed, says, squares []float64 // by view, says the squared error that the model expects
	features                     []hiddenFeature
}

// hiddenFeature is a feature of a set of subjects.
type hiddenFeature struct {
	view         int
	cells, ratio float64 // the mean squared error in that which the model says
}

// leastTold bounds how much errors beyond the model's own are enlarged where cells were filled.
const leastTold = 0.2

// hide takes a view after the other from blocks of subjects and predicts it from what is left. With x the
// factors given the others and K their regression on these, the squared errors of a feature add up to
//
//	Σ (t − μ)² − 2 wᵀΣ⟨x⟩(t − μ) + wᵀΣ⟨x⟩⟨x⟩ᵀw,
//
// which sums give exactly. Cells that were filled are as far off as the model has it. So by how much they are further
// off is enlarged by what the others tell: half way between cells and products of two on a logarithmic scale, by
// measurement (TestHowSureIsTrueOfOthers). A view that is infinitely noisy says nothing of x: so it is hidden. The
// model describes all features of the blocks. Of a layout with one view, every second feature is hidden, and then the
// others.
func hide(l ppca.Layout, p *ppca.Params, blocks []ppca.Block) (*hidden, error) {
	md, q := ppca.NewModel(l, p.Rank), p.Rank
	defer md.Release()
	md.Load(p)
	e := ppca.NewEStep(q, blocks)
	defer e.Release()
	noise := slices.Clone(md.Psi)
	vector := func() []float64 { return make([]float64, l.Views()) }
	h := &hidden{vector(), vector(), vector(), vector(), nil}
	seen := make([]float64, q*md.LD) // Σ⟨x⟩⟨x⟩ᵀ
	for i := range blocks {
		b := &blocks[i]
		views, step := l.ViewsOf(b.Features), 1
		if l.Views() == 1 {
			views, step = []int{0, 0}, 2
		} else if len(views) < 2 {
			continue
		}
		for part, k := range views {
			lo, hi := l.View(k)
			away := func(j int) bool { return j >= lo && j < hi && (step == 1 || j%step == part) }
			for j := lo; j < hi; j++ {
				if away(j) {
					md.Psi[j] = math.Inf(1)
				}
			}
			if err := e.Run(md, b); err != nil {
				return nil, err
			}
			copy(md.Psi[lo:hi], noise[lo:hi])
			for a := range seen {
				seen[a] = e.SXX[a] - b.N*e.M[a]
			}
			for a, j := range b.Features {
				if !away(j) {
					continue
				}
				w, cells := md.W[j*md.LD:][:q], b.N
				if b.Filled != nil {
					cells -= b.Filled[a]
				}
				failed := e.Square[a] - 2*floats.Dot(w, e.STX[a*md.LD:][:q]) + linalg.Quadratic(seen, md.LD, w, w)
				says := noise[j] + linalg.Quadratic(e.M, md.LD, w, w)
				if b.Filled != nil {
					products := cells / b.N * (1 - floats.Sum(b.Filled)/b.N/float64(len(b.Filled)))
					told := math.Sqrt(products * cells / b.N)
					failed = b.N*says + (failed-b.N*says)/max(told, leastTold)
				}
				failed = max(failed, 0) * cells / b.N
				h.cells[k] += cells
				h.failed[k] += failed
				h.says[k] += cells * says
				h.squares[k] += e.Square[a] * cells / b.N
				h.features = append(h.features, hiddenFeature{k, cells, failed / cells / says})
			}
		}
	}
	return h, nil
}

// newHeldOut puts together what groups of subjects say of models that were fitted to the others, beside what
// all say of the model of all. Small groups tell by how much errors are larger than a model says.
func newHeldOut(groups, small []*hidden, all *hidden) *HeldOut {
	views := len(all.cells)
	vector := func() wire.Vector { return make(wire.Vector, views) }
	h := &HeldOut{vector(), vector(), vector(), vector(), vector(), vector(), nil}
	in, cells, failed, squares := vector(), vector(), vector(), vector()
	sum := func(list []*hidden, cells, failed, squares []float64) {
		for _, g := range list {
			floats.Add(cells, g.cells)
			floats.Add(failed, g.failed)
			floats.Add(squares, g.squares)
		}
	}
	sum(groups, h.Cells, h.Error, h.Squares)
	sum(small, cells, failed, squares)
	n := float64(len(small))
	for k := range h.Times {
		h.Times[k] = max(1, timesOf(small, k))
		for _, g := range small { // of a ratio of sums
			if off := g.failed[k] - g.squares[k]*failed[k]/squares[k]; squares[k] > 0 {
				h.GainSE[k] += off * off * n / (n - 1) / (squares[k] * squares[k])
			}
		}
		h.GainSE[k] = math.Sqrt(h.GainSE[k])
	}
	all.cover(in, nil)
	for _, g := range small {
		g.cover(h.Shift, h.Times)
	}
	for k := range h.Times {
		if cells[k] > 0 {
			h.Shift[k] = h.Shift[k]/cells[k] - in[k]/all.cells[k]
		}
	}
	return h
}

// outlying is how many times the median of groups' ratios one counts at most: a subject far from all others must not
// widen the intervals of all.
const outlying = 2

// timesOf is how many times as large as models say the squared error of view k is: a ratio of sums, so that a site with
// more noise counts as it does in the noise of all; 0 where nobody tells.
func timesOf(groups []*hidden, k int) float64 {
	var ratios []float64
	for _, g := range groups {
		if g.says[k] > 0 {
			ratios = append(ratios, g.failed[k]/g.says[k])
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	slices.Sort(ratios)
	most, failed, says := outlying*ratios[len(ratios)/2], 0.0, 0.0
	for _, g := range groups {
		failed, says = failed+min(g.failed[k], most*g.says[k]), says+g.says[k]
	}
	return failed / says
}

// cover adds to how many values of each view lie in intervals of 90 % that are widened by so much, if errors
// are normal and as large as they are.
func (h *hidden) cover(dst, times []float64) {
	for _, f := range h.features {
		wide := 1 / f.ratio
		if times != nil {
			wide *= times[f.view]
		}
		dst[f.view] += f.cells * math.Erf(normal95*math.Sqrt(wide/2))
	}
}

// normal95 is the quantile of 95 % of the normal distribution.
const normal95 = 1.6448536269514722

// Ranks compares numbers of factors by models that are fitted to nine tenths of the subjects of some sites, as far as
// their sums tell, and judged by how likely they make the others. All is about the means of the sites.
type Ranks struct {
	Values []int // that were tried
	layout ppca.Layout
	all    []ppca.Block
	groups [][]ppca.Block
	scores [][]float64 // log-likelihood of each group, by value
	errors float64     // standard errors by which a value may be behind
}

// What a model has filled repeats the model, and subjects who are left out then tell numbers of factors apart with more
// certainty than they have: differences count from twice the standard error on.
const (
	errorsOfMeans = 1.0
	errorsOfModel = 2.0
)

// NewRanks divides subjects at random where they come from fewer than ten sites. Filled says whether a model has filled
// what they lack. It returns nil where nobody can be left out.
func NewRanks(l ppca.Layout, sites [][]ppca.Block, filled bool, rng *rand.Rand) *Ranks {
	all, _, parts := divided(l, true, sites, rng)
	groups := grouped(parts)
	if len(groups) < 2 {
		return nil
	}
	for g, blocks := range groups { // whose likelihood is that of their sums
		groups[g] = ppca.Merge(blocks)
	}
	r := &Ranks{layout: l, all: ppca.Merge(all), groups: groups, errors: errorsOfMeans}
	if filled {
		r.errors = errorsOfModel
	}
	return r
}

// Try adds models of q factors. It is false, and adds nothing, where fewer were tried and the subjects carry no more.
func (r *Ranks) Try(q int) (bool, error) {
	first := len(r.Values) == 0
	fit, err := ppca.FitBest(r.layout, r.all, q,
		ppca.FitOptions{LeastNoise: ppca.LeastNoise, Tol: toleranceLeftOut})
	if err != nil {
		if first {
			return false, fmt.Errorf("choosing the number of factors: %w", err)
		}
		return false, nil // more factors than directions
	}
	var score []float64
	err = eachOut(r.layout, &fit.Params, r.groups, compared, func(p *ppca.Params, out []ppca.Block) error {
		for i := range out {
			out[i].Filled = nil // as if none had been
		}
		logLik, _, err := ppca.LogLik(r.layout, p, out)
		score = append(score, logLik)
		return err
	})
	switch {
	case err == nil:
		r.Values, r.scores = append(r.Values, q), append(r.scores, score)
		return true, nil
	case errors.Is(err, ppca.ErrCollapsed) && !first:
		return false, nil
	}
	return false, fmt.Errorf("choosing the number of factors: %w", err)
}

// LogLik is the log-likelihood per subject who was left out (nats), by value.
func (r *Ranks) LogLik() []float64 {
	out, n := make([]float64, len(r.scores)), ppca.Subjects(r.all)
	for i, score := range r.scores {
		out[i] = floats.Sum(score) / n
	}
	return out
}

// Likeliest is the place of the value that makes subjects who were left out the likeliest.
func (r *Ranks) Likeliest() int { return floats.MaxIdx(r.LogLik()) }

// Behind is by how much a subject who was left out is less likely than with the likeliest value (nats), and the
// standard error of that, by how groups differ.
func (r *Ranks) Behind(i int) (mean, se float64) {
	behind := slices.Clone(r.scores[r.Likeliest()])
	floats.Sub(behind, r.scores[i])
	mean, sd := stat.MeanStdDev(behind, nil)
	n := float64(len(behind))
	each := ppca.Subjects(r.all) / n
	return mean / each, sd / math.Sqrt(n) / each
}

// Choice is the place of the smallest value that is not behind the likeliest by more than a standard error, or two
// where a model has filled cells.
func (r *Ranks) Choice() int {
	for i := range r.Values {
		if mean, se := r.Behind(i); !(mean > r.errors*se) {
			return i
		}
	}
	return r.Likeliest()
}

// ChooseRank is the number of factors that [Ranks] chooses, at most so many. It ends where three more factors have not
// helped.
func ChooseRank(l ppca.Layout, sites [][]ppca.Block, filled bool, most int, rng *rand.Rand) (int, error) {
	r := NewRanks(l, sites, filled, rng)
	if r == nil {
		return 1, nil
	}
	for q := 1; q <= most && (q == 1 || q <= r.Values[r.Likeliest()]+3); q++ {
		if carried, err := r.Try(q); err != nil {
			return 0, err
		} else if !carried {
			break
		}
	}
	return r.Values[r.Choice()], nil
}
