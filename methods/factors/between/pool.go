package between

import (
	"encoding/binary"
	"fmt"
	"slices"

	"parley/internal/linalg"
	"parley/methods/factors/ppca"
)

// Pool is the coordinator's half of a hierarchical round. View by view it
// estimates the variances between sites by restricted maximum likelihood and
// W̃ and μ̃ by generalised least squares, and group by group the law of the noise
// variances. Then it moves the pooled mean and covariance of the factors into
// μ̃ and W̃. It returns the new prior and, in the order of the messages, the
// states of the sites under it, moved alike: where the next round may start.
//
// A view that one site alone has gets variance zero and that site's estimate.
func Pool(l ppca.Layout, sites []Message) (*ppca.Prior, []State, error) {
	if err := l.Check(); err != nil {
		return nil, nil, err
	}
	if len(sites) == 0 {
		return nil, nil, fmt.Errorf("no site's message to pool")
	}
	q := sites[0].Rank
	for i := range sites {
		if err := sites[i].Check(l); err != nil {
			return nil, nil, fmt.Errorf("site %d: %w", i, err)
		}
		if sites[i].Rank != q {
			return nil, nil, fmt.Errorf("site %d has %d factors, site 0 has %d", i, sites[i].Rank, q)
		}
	}
	p, err := newPool(l, q, sites)
	if err != nil {
		return nil, nil, err
	}
	prior := &ppca.Prior{
		Params: ppca.Params{Rank: q, W: make([]float64, l.Features()*q), Mu: make([]float64, l.Features()), Noise: make([]float64, l.Groups())},
		VarW:   make([]float64, l.Views()), VarMu: make([]float64, l.Views()),
		Alpha: make([]float64, l.Groups()), Beta: make([]float64, l.Groups()),
	}
	for k := range l.Views() {
		r := p.view(k)
		if len(r.classes) == 0 {
			continue
		}
		prior.VarW[k], prior.VarMu[k] = r.minimise()
		ok := true
		take := func(j int, row []float64) {
			ok = ok && ppca.Within("estimate", row, 10*ppca.LargestValue) == nil
			copy(prior.W[j*q:][:q], row)
			prior.Mu[j] = row[q]
		}
		if r.estimate(prior.VarW[k], prior.VarMu[k], take) != nil || !ok {
			// Sites are so unlike in how sure they are that rounding decides.
			r.plain(take)
		}
		for _, c := range r.classes {
			for _, f := range c.features {
				prior.Features = append(prior.Features, f.j)
			}
		}
	}
	slices.Sort(prior.Features)
	for g := range l.Groups() {
		var s, df []float64
		for i := range sites {
			if m := &sites[i]; m.Cells[g] > 0 {
				variance, free := m.noise(g)
				s, df = append(s, variance), append(df, free)
			}
		}
		if len(s) > 0 {
			prior.Alpha[g], prior.Beta[g] = noiseLaw(s, df)
			prior.Noise[g] = prior.Beta[g] / prior.Alpha[g]
		}
	}
	states := p.states(prior)
	if err := p.gauge(prior, states); err != nil {
		return nil, nil, err
	}
	if err := prior.Check(l); err != nil {
		return nil, nil, fmt.Errorf("pooled prior: %w", err)
	}
	for i := range states {
		if states[i].Check(l) != nil {
			states[i] = p.fresh(prior, i)
		}
	}
	return prior, states, nil
}

// fresh is where a site starts that nothing is known of but the prior: it stands
// in for a state that rounding has taken the meaning from, as it does where sites
// are further apart than numbers are fine.
func (p *pool) fresh(prior *ppca.Prior, i int) State {
	m, q := &p.sites[i], p.q
	d, group := p.layout.Features(), p.layout.GroupOf()
	s := State{
		Params: ppca.Params{Features: slices.Clone(m.Features), Rank: q, W: make([]float64, d*q), Mu: make([]float64, d), Noise: make([]float64, p.layout.Groups())},
		Nu:     make([]float64, q), Xi: make([]float64, q*q),
	}
	for _, j := range m.Features {
		copy(s.W[j*q:][:q], prior.W[j*q:])
		s.Mu[j], s.Noise[group[j]] = prior.Mu[j], prior.Noise[group[j]]
	}
	for a := range q {
		s.Xi[a*q+a] = 1
	}
	return s
}

// Restricted returns minus the restricted log-likelihood of one view at given
// variances between sites, constants dropped, and the rows of [W μ] that belong to
// them: what [Pool] minimises, and what it then takes. The messages are of one rank
// and were checked.
func Restricted(l ppca.Layout, sites []Message, view int, varW, varMu float64) (objective float64, rows []float64, err error) {
	q := 0
	if len(sites) > 0 {
		q = sites[0].Rank
	}
	p, err := newPool(l, q, sites)
	if err != nil {
		return 0, nil, err
	}
	r := p.view(view)
	objective = r.objective(varW, varMu)
	err = r.estimate(varW, varMu, func(_ int, row []float64) { rows = append(rows, row...) })
	return objective, rows, err
}

// pool is the workspace of one call.
type pool struct {
	layout ppca.Layout
	q      int
	sites  []Message
	at     [][]int       // per site: index of each feature in the message, −1 if absent
	rows   [][]*spectrum // per site and class, of R
}

// newPool prepares what view needs of every message. The messages were checked.
func newPool(l ppca.Layout, q int, sites []Message) (*pool, error) {
	p := &pool{layout: l, q: q, sites: sites}
	q1 := q + 1
	e := linalg.NewEigen(q1)
	for i := range p.sites {
		m := &p.sites[i]
		at := make([]int, p.layout.Features())
		for j := range at {
			at[j] = -1
		}
		for k, j := range m.Features {
			at[j] = k
		}
		var rows []*spectrum
		for r := range slices.Chunk(m.R, q1*q1) {
			one, ok := newSpectrum(e, r, q1)
			if !ok {
				return nil, fmt.Errorf("site %d: R has no positive eigenvalues", i)
			}
			rows = append(rows, one)
		}
		p.at, p.rows = append(p.at, at), append(p.rows, rows)
	}
	return p, nil
}

// view gathers the estimates of one view, features of like precision together.
func (p *pool) view(k int) *reml {
	q1 := p.q + 1
	r := &reml{q: p.q}
	group := p.layout.GroupOf()
	lo, hi := p.layout.View(k)
	classes, groups := make(map[string]*remlClass), make(map[string]int)
	var key []byte // the sites that have a feature, and the class there
	var y [][]float64
	for j := lo; j < hi; j++ {
		key, y = key[:0], y[:0]
		for i := range p.sites {
			if at := p.at[i][j]; at >= 0 {
				m := &p.sites[i]
				key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(i)), uint64(m.Class[at]))
				y = append(y, m.Y[at*q1:][:q1])
			}
		}
		if len(y) == 0 {
			continue
		}
		c, ok := classes[string(key)]
		if !ok {
			c = new(remlClass)
			for i := range p.sites {
				if at := p.at[i][j]; at >= 0 {
					c.sites = append(c.sites, p.rows[i][p.sites[i].Class[at]])
				}
			}
			r.classes = append(r.classes, c)
			classes[string(key)] = c
		}
		key = binary.AppendUvarint(key, uint64(group[j]))
		g, ok := groups[string(key)]
		if !ok {
			g = len(c.groups)
			groups[string(key)] = g
			noise := make([]float64, 0, len(y))
			for i := range p.sites {
				if p.at[i][j] >= 0 {
					noise = append(noise, p.sites[i].Noise[group[j]])
				}
			}
			r.group(c, noise)
		}
		r.feature(c, g, j, y)
	}
	return r
}

// states combines every site's estimate with the prior: the posterior mean
// w + D A⁻¹(y − w) of each row of [W μ].
func (p *pool) states(prior *ppca.Prior) []State {
	q, q1 := p.q, p.q+1
	d, view, group := p.layout.Features(), p.layout.ViewOf(), p.layout.GroupOf()
	row, turned, applied := make([]float64, q1), make([]float64, q1), make([]float64, q1)
	x, none := weights{w: make([]float64, q1)}, linalg.LogSum{Product: 1}
	var out []State
	for i := range p.sites {
		m := &p.sites[i]
		s := State{
			Params: ppca.Params{
				Features: slices.Clone(m.Features), Rank: q,
				W: make([]float64, d*q), Mu: make([]float64, d), Noise: slices.Clone(m.Noise),
			},
			Nu: slices.Clone(m.Nu), Xi: slices.Clone(m.Xi),
		}
		for k, j := range m.Features {
			varW, varMu, rows := prior.VarW[view[j]], prior.VarMu[view[j]], p.rows[i][m.Class[k]]
			for a, y := range m.Y[k*q1:][:q1] {
				if a < q {
					row[a] = y - prior.W[j*q+a]
				} else {
					row[a] = y - prior.Mu[j]
				}
			}
			x.loadings(rows, m.Noise[group[j]], varW, &none)
			x.mean(varW, varMu, &none)
			rows.turn(turned, row)
			x.apply(applied, rows, turned)
			rows.back(row, applied)
			for a, x := range row[:q] {
				s.W[j*q+a] = prior.W[j*q+a] + varW*x
			}
			s.Mu[j] = prior.Mu[j] + varMu*row[q]
		}
		out = append(out, s)
	}
	return out
}

// gauge gives the pooled factors mean 0 and covariance I, the differences
// between sites included, by moving their mean ν and covariance Ξ into the
// parameters: μ += W ν and W := W Ξ^½, for the prior and for every site.
func (p *pool) gauge(prior *ppca.Prior, states []State) error {
	q, n := p.q, 0.0
	nu, xi := make([]float64, q), make([]float64, q*q)
	for i := range p.sites {
		m := &p.sites[i]
		n += m.Subjects
		for a := range q {
			nu[a] += m.Subjects * m.Nu[a]
			for c := range q {
				xi[a*q+c] += m.Subjects * (m.Xi[a*q+c] + m.Nu[a]*m.Nu[c])
			}
		}
	}
	for a := range q {
		nu[a] /= n
	}
	for a := range q {
		for c := range q {
			xi[a*q+c] = xi[a*q+c]/n - nu[a]*nu[c]
		}
	}
	e, ld := linalg.NewEigen(q), linalg.Stride(q)
	root, inverse := make([]float64, q*ld), make([]float64, q*q)
	if !e.Factorise(xi, q) || !(e.Values[q-1] > 0) {
		return ppca.ErrCollapsed
	}
	// Where the factors of sites are far apart, rounding hides how they spread
	// within each.
	for a := range e.Values {
		e.Values[a] = max(e.Values[a], roundedAway*e.Values[q-1])
	}
	if !e.Power(root, ld, 0.5) || !e.Power(inverse, q, -0.5) {
		return ppca.ErrCollapsed
	}
	md := ppca.NewModel(p.layout, q)
	scratch := make([]float64, len(md.W))
	move := func(x *ppca.Params) {
		md.Load(x)
		md.Move(nu, root, scratch)
		*x = md.Params(p.layout, x.Features)
	}
	move(&prior.Params)
	for i := range states {
		s := &states[i]
		move(&s.Params)
		shifted := make([]float64, q)
		for a := range q {
			shifted[a] = s.Nu[a] - nu[a]
		}
		linalg.Times(s.Nu, inverse, q, shifted)
		s.Xi = sandwich(inverse, s.Xi, q)
	}
	return nil
}

// sandwich returns a x a for symmetric n × n matrices.
func sandwich(a, x []float64, n int) []float64 {
	t, out := make([]float64, n*n), make([]float64, n*n)
	for i := range n {
		for j := range n {
			for k := range n {
				t[i*n+j] += a[i*n+k] * x[k*n+j]
			}
		}
	}
	for i := range n {
		for j := range n {
			for k := range n {
				out[i*n+j] += t[i*n+k] * a[k*n+j]
			}
		}
	}
	linalg.Symmetrise(out, n, n)
	return out
}
