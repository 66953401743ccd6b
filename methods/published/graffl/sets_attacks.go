package graffl

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/gmm"
)

// differenced is differencing of two studies of one plan, between which one person has left:
// the answers about one and the same simulated set differ by that person's part, so
// that each says how far a known set lies from one row.
func (a attacker) differenced(ctx context.Context) error {
	for _, d := range []gmm.Discrepancy{{Kind: gmm.Energy}, {Kind: gmm.MMD, Bandwidth: width(a.Victims) / 12 * math.Sqrt(float64(a.Dim))}} {
		a.Tell(fmt.Sprintf("sets: differencing, %s", d.Kind))
		s, err := studyOf(a.Victims, Sets, func(o *Options) {
			o.Set.Discrepancy, o.Set.Bandwidth = string(d.Kind), d.Bandwidth
			o.Set.Particles, o.Set.Proposals, o.Set.Rows = setBatch, setBatch, 20
		})
		if err != nil {
			return err
		}
		r, err := a.Difference(ctx, s.Setup, 0.001, sumsOf,
			func(own []float64) ([]float64, error) { return locateBySets(a.Victims, s, d, own), nil })
		if err != nil {
			return err
		}
		a.Found(method.Attack{Variant: Sets, Name: fmt.Sprintf("C: differencing two studies, %s", d.Kind), Answers: 2 * setBatch, Of: "means of the person's site", Active: true,
			Needs: "two studies of one plan, between which one person has left or joined"}, r, 1, false)
	}
	return nil
}

// width is the mean width of the features' public ranges.
func width(v *mixture.Victims) (w float64) {
	_, lo, hi := mixture.Box(v.Plan)
	for i := range lo {
		w += (hi[i] - lo[i]) / float64(v.Dim)
	}
	return w
}

// locateBySets finds the row whose mean distance, or kernel value, to each simulated
// set of the first batch is as given.
func locateBySets(v *mixture.Victims, s setup, d gmm.Discrepancy, means []float64) []float64 {
	smc := &SMC{Prior: s.Prior, Choices: s.own.choices(s.Seed("sets"))}
	var sets [][]float64
	var want, starts []float64
	each(s, 0, smc.Propose(len(means)), func(i int, set []float64) {
		if set == nil {
			return
		}
		sets, want = append(sets, slices.Clone(set)), append(want, means[i])
		starts = append(starts, set[:2*v.Dim]...)
	})
	residuals := func(r, jac, x []float64) {
		for i, set := range sets {
			if jac == nil {
				r[i] = d.Cross(x, set, v.Dim) - want[i]
				continue
			}
			row := jac[i*v.Dim:][:v.Dim]
			r[i] = slope(d, row, x, set) - want[i]
		}
	}
	// From the points that fit best so far, and the middle of the box.
	type start struct {
		x    []float64
		loss float64
	}
	r := make([]float64, len(sets))
	var all []start
	for x := range slices.Chunk(append(starts, s.Prior.Mean...), v.Dim) {
		residuals(r, nil, x)
		all = append(all, start{x, gmm.Squares(r)})
	}
	slices.SortStableFunc(all, func(a, b start) int { return cmp.Compare(a.loss, b.loss) })
	var best []float64
	least := math.Inf(1)
	for _, b := range all[:min(len(all), 8)] {
		x := slices.Clone(b.x)
		if loss := mixture.LeastSquares(x, len(sets), residuals); loss < least {
			best, least = x, loss
		}
	}
	return best
}

const (
	scanned     = 50     // rows of the site that is scanned
	scanDim     = 3      // more features take too many kernels
	scanLevels  = 12     // halvings of the box
	scanCells   = 20_000 // most kernels of one level
	tightLogSD  = -25    // of the components of a tight set: all its rows are one point
	scanKeepers = 1e-6   // relative slack for rounding
)

// scanned narrows kernels down on the rows of one site: a coordinator that chooses
// both bandwidth and sets makes each set a single point, asks for the kernel mean
// there, halves cells where somebody is, and narrows the kernel with them.
func (a attacker) scanned(ctx context.Context) error {
	if a.Dim > scanDim {
		return nil
	}
	a.Tell("sets: narrow kernels")
	rows := a.Sites[0][:min(len(a.Sites[0]), scanned*a.Dim)]
	data, err := a.Source(rows)
	if err != nil {
		return err
	}
	_, lo, hi := mixture.Box(a.Plan)
	s := &scan{attacker: a, rows: data, cells: [][]float64{make([]float64, a.Dim)}}
	for i := range s.cells[0] {
		s.cells[0][i] = (lo[i] + hi[i]) / 2
		s.side = max(s.side, hi[i]-lo[i])
	}
	asked := 0
	for range scanLevels {
		next := s.halves()
		if len(next) > scanCells {
			break
		}
		s.cells, s.side = next, s.side/2
		asked += len(next)
		if err := s.level(ctx); err != nil {
			return err
		}
	}
	r := a.Closest(rows, s.peaks(), 0.05)
	a.Found(method.Attack{Variant: Sets, Name: "D: narrow kernels, scanned", Answers: asked, Of: "means of the site", Active: true,
		Needs: fmt.Sprintf("to choose each kernel's width, a study for each of %d, and sets of a single point; a site answers no more of a study's tasks than its plan lists, here %d", scanLevels, s.granted)}, r, 0.9, false)
	return nil
}

// scan is where rows may be.
type scan struct {
	attacker
	rows   dataset.Source
	cells  [][]float64 // middles of cubes
	values []float64   // kernel sums there
	side   float64

	granted int // tasks that the plan of the last level lists
}

// halves cuts every cell in two along each axis.
func (s *scan) halves() (out [][]float64) {
	for _, c := range s.cells {
		for corner := range 1 << s.Dim {
			x := slices.Clone(c)
			for i := range x {
				x[i] += s.side / 4 * float64(corner>>i&1*2-1)
			}
			out = append(out, x)
		}
	}
	return out
}

// level asks for the kernel sum in the middle of every cell, and keeps the cells that
// a row may be in: then it is at least that of a row in the corner.
func (s *scan) level(ctx context.Context) error {
	h := s.side / 2
	half, err := studyOf(s.Victims, Sets, func(o *Options) {
		o.Set.Discrepancy, o.Set.Bandwidth, o.Set.Rows = string(gmm.MMD), h, 2
	})
	if err != nil {
		return err
	}
	s.granted = half.own.Set.Proposals
	var tasks []method.Task
	for batch := range slices.Chunk(s.cells, setBatch) {
		var proposals [][]float64
		for _, c := range batch {
			proposals = append(proposals, single(half, c))
		}
		ask, err := ask(half.Plan.Sites[:1], 0, proposals)
		if err != nil {
			return err
		}
		tasks = append(tasks, ask...)
	}
	answers, err := s.Lab.Ask(ctx, half.Plan, half.Plan.Sites[0], s.rows, tasks...)
	if err != nil {
		return err
	}
	var sums []float64
	for _, a := range answers {
		more, err := sumsOf(a)
		if err != nil {
			return err
		}
		sums = append(sums, more...)
	}
	least := math.Exp(-float64(s.Dim)/2) * (1 - scanKeepers)
	cells := s.cells
	s.cells, s.values = nil, nil
	for i, v := range sums {
		if v >= least {
			s.cells, s.values = append(s.cells, cells[i]), append(s.values, v)
		}
	}
	return nil
}

// single is a parameter all of whose rows are one point, in [gmm.Coordinates].
func single(s setup, x []float64) []float64 {
	c := gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}
	u := make([]float64, c.Len())
	at := c.K - 1
	for range c.K {
		at += copy(u[at:], x)
	}
	for range c.K {
		for i := range c.Dim {
			at += i
			u[at] = tightLogSD
			at++
		}
	}
	return u
}

// peaks are the cells with the largest sums, none close to another.
func (s *scan) peaks() (out []float64) {
	order := make([]int, len(s.cells))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(s.values[j], s.values[i]) })
next:
	for _, i := range order {
		for x := range slices.Chunk(out, s.Dim) {
			if gmm.SquaredDistance(x, s.cells[i]) < 9*s.side*s.side {
				continue next
			}
		}
		out = append(out, s.cells[i]...)
	}
	return out
}
