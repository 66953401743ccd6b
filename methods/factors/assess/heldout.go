package assess

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"

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
}

// Gain is the share of the squared error of "everybody has the mean" that the prediction takes away; NaN
// where nobody has the view and another.
func (h *HeldOut) Gain(k int) float64 { return 1 - h.Error[k]/h.Squares[k] }

// Check says what is wrong with what was kept of a layout with so many views.
func (h *HeldOut) Check(views int) error {
	for _, x := range []wire.Vector{h.Cells, h.Error, h.Squares, h.GainSE, h.Times} {
		if len(x) != views || slices.Min(x) < 0 {
			return fmt.Errorf("subjects left out: %d numbers for %d views, or one below 0", len(x), views)
		}
		if err := ppca.Finite("subjects left out", x); err != nil {
			return err
		}
	}
	if len(h.Shift) != views || slices.Min(h.Times) < 1 || floats.Norm(h.Shift, math.Inf(1)) > 1 {
		return fmt.Errorf("subjects left out: errors of less than the model says, or coverage by more than all")
	}
	return nil
}

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

// hide takes a view after the other from blocks of subjects and predicts it from what is left. With x the
// factors given the others and K their regression on these, the squared errors of a feature add up to
//
//	Σ (t − μ)² − 2 wᵀΣ⟨x⟩(t − μ) + wᵀΣ⟨x⟩⟨x⟩ᵀw,
//
// which sums give exactly. A view that is infinitely noisy says nothing of x: so it is hidden. The model describes all
// features of the blocks.
func hide(l ppca.Layout, p *ppca.Params, blocks []ppca.Block) (*hidden, error) {
	md, q := ppca.NewModel(l, p.Rank), p.Rank
	defer md.Release()
	md.Load(p)
	e := ppca.NewEStep(q, blocks)
	defer e.Release()
	noise, view := slices.Clone(md.Psi), l.ViewOf()
	vector := func() []float64 { return make([]float64, l.Views()) }
	h := &hidden{vector(), vector(), vector(), vector(), nil}
	seen := make([]float64, q*md.LD) // Σ⟨x⟩⟨x⟩ᵀ
	for i := range blocks {
		b := &blocks[i]
		views := l.ViewsOf(b.Features)
		for _, k := range views {
			if len(views) < 2 {
				continue
			}
			lo, hi := l.View(k)
			for j := lo; j < hi; j++ {
				md.Psi[j] = math.Inf(1)
			}
			if err := e.Run(md, b, nil); err != nil {
				return nil, err
			}
			copy(md.Psi[lo:hi], noise[lo:hi])
			for a := range seen {
				seen[a] = e.SXX[a] - b.N*e.M[a]
			}
			for a, j := range b.Features {
				if view[j] != k {
					continue
				}
				w, cells := md.W[j*md.LD:][:q], b.N
				if b.Filled != nil {
					cells -= b.Filled[a]
				}
				failed := e.Square[a] - 2*floats.Dot(w, e.STX[a*md.LD:][:q]) + linalg.Quadratic(seen, md.LD, w, w)
				failed = max(failed, 0) * cells / b.N
				says := noise[j] + linalg.Quadratic(e.M, md.LD, w, w)
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
	h := &HeldOut{vector(), vector(), vector(), vector(), vector(), vector()}
	for _, g := range groups {
		floats.Add(h.Cells, g.cells)
		floats.Add(h.Error, g.failed)
		floats.Add(h.Squares, g.squares)
	}
	cells, failed, says, squares, in := vector(), vector(), vector(), vector(), vector()
	for _, g := range small {
		floats.Add(cells, g.cells)
		floats.Add(failed, g.failed)
		floats.Add(says, g.says)
		floats.Add(squares, g.squares)
	}
	n := float64(len(small))
	for k := range h.Times {
		if h.Times[k] = 1; says[k] > 0 { // sums, so that a site with more noise counts as it does in the noise of all
			h.Times[k] = max(1, failed[k]/says[k])
		}
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
