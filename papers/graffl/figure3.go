package graffl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/methods/mixture/gmm"
	abcMethod "parley/methods/published/graffl"
	"parley/papers/experiment"
	"parley/papers/graffl/toy"
)

// sampler is one way to a sample of the example's parameters.
type sampler struct {
	name    string
	options map[string]any // of a study's method; nil for what needs no study
	rows    []int          // of each site
	epsilon float64        // of the total; 0 for no privacy
	sets    int            // data sets, from seeds 1, 2, …
}

const (
	prior      = "prior"
	exact      = "exact"
	exactDraws = 1000
	// asPublished has a hundred rounds of all rows; the paper does not say how many it took.
	asPublished = "Algorithm 2, N = 900000, L = 1000"
	today       = "default"
)

var thousands, hundreds, uneven = []int{3000, 3000, 3000}, []int{300, 300, 300}, []int{630, 180, 90}

// samplers are those of the table, in its order.
func samplers() (all []sampler) {
	all = append(all, sampler{name: prior, rows: thousands, sets: 5})
	for _, p := range []struct {
		rounds, accepted int
		alpha            float64
		rows             []int
	}{
		{10, 100, 1, thousands}, {100, 1000, 1, thousands}, {500, 1000, 1, thousands}, {100, 1000, 0.1, thousands},
		{100, 1000, 2.4, thousands},
		// As many proposals of fewer rows: does anything contract? And what of unequal weights?
		{1000, 1000, 1, hundreds}, {10_000, 1000, 1, []int{30, 30, 30}}, {1000, 1000, 1, uneven},
	} {
		name := fmt.Sprintf("Algorithm 2, N = %d, L = %d", p.rounds*(p.rows[0]+p.rows[1]+p.rows[2]), p.accepted)
		if p.alpha != 1 {
			name += fmt.Sprintf(", α = %v", p.alpha)
		}
		all = append(all, sampler{name: name, rows: p.rows, sets: 5, options: map[string]any{"name": abcMethod.Name,
			"prior":  map[string]any{"concentration": p.alpha},
			"rounds": p.rounds, "accepted": p.accepted}})
	}
	for _, n := range []int{3750, 7500, 15_000, 30_000} {
		all = append(all, sampler{name: fmt.Sprintf("set, %d proposals", n), rows: hundreds, sets: 3,
			options: map[string]any{"name": abcMethod.Name, "algorithm": abcMethod.Sets,
				"set": map[string]any{"proposals": n}}})
	}
	for _, rows := range [][]int{thousands, hundreds, uneven} {
		sets := 20
		if rows[0] == hundreds[0] {
			sets = 50 // for the picture of coverage
		}
		all = append(all, sampler{name: exact, rows: rows, sets: sets})
		if rows[0] != thousands[0] { // which takes ten times as long
			all = append(all, sampler{name: oneRound, rows: rows, sets: 10},
				sampler{name: regressed, rows: rows, sets: 10})
		}
		for _, epsilon := range []float64{0, 5, 1} {
			all = append(all, sampler{name: today, options: map[string]any{}, rows: rows, epsilon: epsilon, sets: sets})
		}
	}
	return all
}

func (s sampler) sites() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(s.rows), " ", " + "), "[]")
}

func (s sampler) is(name string, rows []int) bool {
	return s.name == name && slices.Equal(s.rows, rows)
}

func (s sampler) privacy() string {
	switch {
	case s.options == nil && s.name != regressed && s.name != oneRound:
		return ""
	case s.epsilon == 0:
		return "none"
	}
	return fmt.Sprintf("ε %v", s.epsilon)
}

func (s sampler) id(set int) string {
	return fmt.Sprintf("%s-%02d", experiment.Slug(s.name+" "+s.sites()+" "+s.privacy()), set+1)
}

// ids are those of the data sets that were run.
func (s sampler) ids(o experiment.Outcomes) (ids []string) {
	for i := range s.sets {
		if o[s.id(i)] != nil {
			ids = append(ids, s.id(i))
		}
	}
	return ids
}

// figure3 is Figure 3: the example of three modes, with all variants.
func figure3() experiment.Experiment {
	return experiment.Experiment{Name: "graffl-figure-3",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, s := range samplers() {
				short := s.options == nil || s.is(asPublished, thousands) || s.name == today && s.epsilon == 0
				for set := range s.sets {
					if quick && (set > 0 || !short) {
						continue
					}
					cells.Add(s.id(set), func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
						return s.run(ctx, uint64(set+1))
					})
				}
			}
			return cells
		},
		Conclude: conclude3,
	}
}

// run samples once, and compares with the truth.
func (s sampler) run(ctx context.Context, seed uint64) (experiment.Values, error) {
	truth, v := toy.Truth(s.rows), experiment.Values{}
	p, err := toy.Prior(1)
	if err != nil {
		return nil, err
	}
	var sample *gmm.Posterior
	switch {
	case s.options != nil:
		r, err := toy.Study{Options: s.options, Rows: s.rows, Epsilon: s.epsilon, Seed: seed}.Run(ctx)
		if err != nil {
			return nil, err
		}
		sample = r.Sample
		v["bytes"], v["size"] = []float64{float64(r.Up)}, []float64{sample.Size}
		if m, ok := r.Modes(truth); ok {
			v["modes"] = m.Means
		}
		if at, ok := r.Metrics["largest_accepted_distance"]; ok {
			v["threshold"] = []float64{at}
		}
	case s.name == regressed || s.name == oneRound:
		var up int
		n := map[string]int{oneRound: 1, regressed: rounds}[s.name]
		if sample, up, err = byRegression(p, toy.Data(s.rows, seed), n, rand.New(rand.NewPCG(seed, 6))); err != nil {
			return nil, err
		}
		v["bytes"], v["size"] = []float64{float64(up)}, []float64{sample.Size}
	case s.name == exact:
		sample = toy.Conjugate(p, toy.Data(s.rows, seed), exactDraws, rand.New(rand.NewPCG(seed, 3)))
	default:
		sample = &gmm.Posterior{}
		r, sampler := rand.New(rand.NewPCG(seed, 4)), abcMethod.NewSampler(p)
		for range exactDraws {
			m := gmm.NewMixture(p.Components(), p.Dim())
			sampler.Draw(r, m)
			sample.Draws, sample.Weights = append(sample.Draws, m), append(sample.Weights, 1./exactDraws)
		}
	}
	var scores toy.Scores
	scores.Add(sample, truth)
	for name, t := range map[string]toy.Tally{"μ": scores.Means, "π": scores.Weights, "Σ": scores.Covs} {
		v[name+" error"], v[name+" width"], v[name+" rank"] = t.Errors, t.Widths, t.Ranks
	}
	if seed == 1 && s.options != nil {
		v["density"] = density(sample)
	}
	return v, nil
}

// Where the density of a cloud of means is known.
const (
	places    = 41
	reach     = 13.0 // ±
	bandwidth = 0.7
)

func grid() (at figure.Numbers) {
	for i := range places {
		at = append(at, reach*(2*float64(i)/(places-1)-1))
	}
	return at
}

// density is the kernel density of the means of all components, by y, then x.
func density(p *gmm.Posterior) (values []float64) {
	const points = 2000
	r := rand.New(rand.NewPCG(1, 5))
	var cloud []float64
	for range points {
		cloud = append(cloud, p.Draws[gmm.Pick(r, p.Weights)].Means...)
	}
	k := abcMethod.NewKernelDensity(cloud, []float64{bandwidth, bandwidth})
	for _, y := range grid() {
		for _, x := range grid() {
			d := k.At([]float64{x / bandwidth, y / bandwidth}, nil)
			d /= float64(k.Len()) * 2 * math.Pi * bandwidth * bandwidth
			values = append(values, math.Round(1e6*d)/1e6)
		}
	}
	return values
}

// conclude3 sets the modes beside the truth, and shows what samples are worth.
func conclude3(o experiment.Outcomes) experiment.Conclusion {
	out := experiment.Conclusion{Headings: []string{"component"}}
	t := figure.Table{ID: "samples", Title: "What samples are worth",
		Caption: fmt.Sprintf("Errors of posterior means over data sets and coordinates, and what nominal 90 %% "+
			"intervals hold; δ %v. The threshold ε of Algorithm 2 is a squared distance, as its text has it.",
			toy.Delta),
		Columns: figure.TextColumns("sample", "rows", "privacy", "data sets", "RMSE μ", "width μ", "coverage μ",
			"RMSE of modes", "largest error π", "coverage π", "RMSE Σ", "coverage Σ", "effective size",
			"threshold", "kB up")}
	var curves []toy.Curve
	var intervals int // of each curve
	picture := figure.Contours{X: figure.Axis{Label: "x"}, Y: figure.Axis{Label: "y"}, XAt: grid(), YAt: grid()}
	for _, s := range samplers() {
		ids := s.ids(o)
		if len(ids) == 0 {
			continue
		}
		s.line(&t, o, ids)
		truth := toy.Truth(s.rows)
		if s.is(today, hundreds) {
			tally, c := toy.Tally{Ranks: o.Gather("μ rank", ids...)}, toy.Curve{Name: "privacy: " + s.privacy()}
			for _, level := range toy.Levels() {
				c.Shares = append(c.Shares, tally.Coverage(level))
			}
			curves, intervals = append(curves, c), len(tally.Ranks)
		}
		if s.is(asPublished, thousands) {
			for i, at := range truth.Means {
				var ours []float64
				for _, id := range ids {
					if m := o[id]["modes"]; len(m) > 0 {
						ours = append(ours, m[i])
					}
				}
				out.Add([]string{fmt.Sprint(i/truth.Dim + 1)}, "mode, "+[]string{"x", "y"}[i%truth.Dim], 2,
					&experiment.Spread{Mean: at}, ours)
			}
		}
		if d := o[s.id(0)]["density"]; d != nil && (s.is(asPublished, thousands) ||
			s.is(today, thousands) && s.epsilon == 0) {
			name, _, _ := strings.Cut(s.name, ",")
			panel := figure.Panel{Title: name, Legend: "density, " + name}
			for j := range places {
				panel.Values = append(panel.Values, d[j*places:][:places])
			}
			picture.Panels = append(picture.Panels, panel)
		}
	}
	out.Tables = []figure.Table{t}
	if len(picture.Panels) > 0 {
		for k := range toy.Sites {
			m := toy.Truth(thousands)
			picture.Groups = append(picture.Groups,
				figure.Group{Name: "rows of " + toy.Sites[k], Mean: m.Mean(k), Cov: figure.Numbers{1, 0, 1}})
		}
		out.Figures = append(out.Figures, figure.Figure{ID: "modes",
			Title: "Where the means of components are thought to lie", Chart: picture,
			Alt: "Densities of component means in the plane, Algorithm 2 beside the default, " +
				"with the ellipses of the three sites' rows.",
			Caption: fmt.Sprintf("Means of all components in one sample each, 9000 rows, smoothed with a standard "+
				"deviation of %v; ellipses hold half and nine tenths of each site's rows.", bandwidth)})
	}
	if len(curves) > 0 {
		out.Figures = append(out.Figures, figure.Figure{ID: "coverage",
			Title: "What intervals of component means hold: the default, " + fmt.Sprint(3*hundreds[0]) + " rows",
			Chart: toy.CoverageLines(curves, intervals),
			Alt: "Share of the true component means inside the central interval against its nominal level, " +
				"one line for each ε, beside the diagonal with the band of chance.",
			Caption: fmt.Sprintf("Share of %d true values that intervals of each level hold, against the level.",
				intervals)})
	}
	return out
}

// line adds a sampler to the table.
func (s sampler) line(t *figure.Table, o experiment.Outcomes, ids []string) {
	of := func(what string) *toy.Tally {
		return &toy.Tally{Errors: o.Gather(what+" error", ids...), Widths: o.Gather(what+" width", ids...),
			Ranks: o.Gather(what+" rank", ids...)}
	}
	mean := func(name string, digits int, by float64) string {
		all := o.Gather(name, ids...)
		if len(all) == 0 {
			return ""
		}
		return fmt.Sprintf("%.*f", digits, by*stat.Mean(all, nil))
	}
	modes, off := "", &toy.Tally{}
	truth := toy.Truth(s.rows).Means
	for i, x := range o.Gather("modes", ids...) {
		off.Errors = append(off.Errors, x-truth[i%len(truth)])
	}
	if len(off.Errors) > 0 {
		modes = number(off.RMSE())
	}
	threshold := ""
	if all := o.Gather("threshold", ids...); len(all) > 0 {
		threshold = fmt.Sprintf("%.3f", all[0])
	}
	m, w, c := of("μ"), of("π"), of("Σ")
	held := func(t *toy.Tally) string { return fmt.Sprintf("%.3f", t.Coverage(toy.Level)) }
	t.Add(s.name, s.sites(), s.privacy(), fmt.Sprint(len(ids)), number(m.RMSE()), number(stat.Mean(m.Widths, nil)),
		held(m), modes, number(floats.Norm(w.Errors, math.Inf(1))), held(w), number(c.RMSE()), held(c),
		mean("size", 0, 1), threshold, mean("bytes", 1, 1e-3))
}

// number has three digits that count.
func number(x float64) string { return fmt.Sprintf("%#.3g", x) }
