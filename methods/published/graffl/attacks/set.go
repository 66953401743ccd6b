package attacks

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/inversion"
	"parley/methods/mixture/options"
	"parley/methods/published/graffl/abc"
	"parley/methods/published/graffl/set"
)

// set is differencing of two studies of one plan, between which one person has left:
// the answers about one and the same simulated set differ by that person's part, so
// that each says how far a known set lies from one row.
func (a *attacker) set(ctx context.Context) error {
	for _, d := range []gmm.Discrepancy{{Kind: gmm.Energy}, {Kind: gmm.MMD, Bandwidth: a.width() / 12 * math.Sqrt(float64(a.dim))}} {
		a.tell(fmt.Sprintf("set: differencing, %s", d.Kind))
		p, err := a.study(options.VariantSet, noProtection, func(o *options.Options) {
			o.Set.Discrepancy, o.Set.Bandwidth = string(d.Kind), d.Bandwidth
			o.Set.Particles, o.Set.Proposals, o.Set.Rows = options.SetBatch, options.SetBatch, 20
		})
		if err != nil {
			return err
		}
		s, err := options.New(p)
		if err != nil {
			return err
		}
		r, err := a.difference(ctx, s, 0.001, set.SumsOf,
			func(own []float64) ([]float64, error) { return a.locateBySets(s, d, own), nil })
		if err != nil {
			return err
		}
		a.found(method.Attack{Variant: options.VariantSet, Name: fmt.Sprintf("C: differencing two studies, %s", d.Kind), Answers: 2 * options.SetBatch, Of: "means of the person's site", Active: true,
			Needs: "two studies of one plan, between which one person has left or joined"}, r, 1, false)
	}
	return nil
}

// width is the mean width of the features' public ranges.
func (v *victims) width() (w float64) {
	_, lo, hi := options.Box(v.plan)
	for i := range lo {
		w += (hi[i] - lo[i]) / float64(v.dim)
	}
	return w
}

// locateBySets finds the row whose mean distance, or kernel value, to each simulated
// set of the first batch is as given.
func (v *victims) locateBySets(s *options.Setup, d gmm.Discrepancy, means []float64) []float64 {
	smc := &abc.SMC{Prior: s.Prior, Choices: s.Options.Choices(s.Seed("sets"))}
	var sets [][]float64
	var want, starts []float64
	set.Each(s, 0, smc.Propose(len(means)), func(i int, set []float64) {
		if set == nil {
			return
		}
		sets, want = append(sets, slices.Clone(set)), append(want, means[i])
		starts = append(starts, set[:2*v.dim]...)
	})
	residuals := func(r, jac, x []float64) {
		for i, set := range sets {
			if jac == nil {
				r[i] = d.Cross(x, set, v.dim) - want[i]
				continue
			}
			row := jac[i*v.dim:][:v.dim]
			r[i] = inversion.Slope(d, row, x, set) - want[i]
		}
	}
	// From the points that fit best so far, and the middle of the box.
	type start struct {
		x    []float64
		loss float64
	}
	r := make([]float64, len(sets))
	var all []start
	for x := range slices.Chunk(append(starts, s.Prior.Mean...), v.dim) {
		residuals(r, nil, x)
		all = append(all, start{x, gmm.Squares(r)})
	}
	slices.SortStableFunc(all, func(a, b start) int { return cmp.Compare(a.loss, b.loss) })
	var best []float64
	least := math.Inf(1)
	for _, b := range all[:min(len(all), 8)] {
		x := slices.Clone(b.x)
		if loss := inversion.LeastSquares(x, len(sets), residuals); loss < least {
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
func (a *attacker) scanned(ctx context.Context) error {
	if a.dim > scanDim {
		return nil
	}
	a.tell("set: narrow kernels")
	rows := a.sites[0][:min(len(a.sites[0]), scanned*a.dim)]
	data, err := a.source(rows)
	if err != nil {
		return err
	}
	_, lo, hi := options.Box(a.plan)
	s := &scan{attacker: a, data: data, cells: [][]float64{make([]float64, a.dim)}}
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
	r := a.closest(rows, s.peaks(), 0.05)
	a.found(method.Attack{Variant: options.VariantSet, Name: "D: narrow kernels, scanned", Answers: asked, Of: "means of the site", Active: true,
		Needs: fmt.Sprintf("to choose each kernel's width, a study for each of %d, and sets of a single point; a site answers no more of a study's tasks than its plan lists, here %d", scanLevels, s.granted)}, r, 0.9, false)
	return nil
}

// scan is where rows may be.
type scan struct {
	*attacker
	data   dataset.Source
	cells  [][]float64 // middles of cubes
	values []float64   // kernel sums there
	side   float64

	granted int // tasks that the plan of the last level lists
}

// halves cuts every cell in two along each axis.
func (s *scan) halves() (out [][]float64) {
	for _, c := range s.cells {
		for corner := range 1 << s.dim {
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
	p, err := s.study(options.VariantSet, noProtection, func(o *options.Options) {
		o.Set.Discrepancy, o.Set.Bandwidth, o.Set.Rows = string(gmm.MMD), h, 2
	})
	if err != nil {
		return err
	}
	half, err := options.New(p)
	if err != nil {
		return err
	}
	s.granted = set.Variant{}.Times(half)
	var tasks []method.Task
	for batch := range slices.Chunk(s.cells, options.SetBatch) {
		var proposals [][]float64
		for _, c := range batch {
			proposals = append(proposals, point(half, c))
		}
		ask, err := set.Ask(p.Sites[:1], 0, proposals)
		if err != nil {
			return err
		}
		tasks = append(tasks, ask...)
	}
	answers, err := s.lab.Ask(ctx, p, p.Sites[0], s.data, tasks...)
	if err != nil {
		return err
	}
	var sums []float64
	for _, a := range answers {
		more, err := set.SumsOf(a)
		if err != nil {
			return err
		}
		sums = append(sums, more...)
	}
	least := math.Exp(-float64(s.dim)/2) * (1 - scanKeepers)
	cells := s.cells
	s.cells, s.values = nil, nil
	for i, v := range sums {
		if v >= least {
			s.cells, s.values = append(s.cells, cells[i]), append(s.values, v)
		}
	}
	return nil
}

// point is a parameter all of whose rows are one point, in [gmm.Coordinates].
func point(s *options.Setup, x []float64) []float64 {
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
		for x := range slices.Chunk(out, s.dim) {
			if gmm.SquaredDistance(x, s.cells[i]) < 9*s.side*s.side {
				continue next
			}
		}
		out = append(out, s.cells[i]...)
	}
	return out
}
