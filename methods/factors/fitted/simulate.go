package fitted

import (
	"fmt"
	"math"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/options"
	"parley/problem"
	"parley/study"
)

// Simulate implements [method.Simulator]. The population is one of the plan's
// model, N(μ, W Wᵀ + Ψ), with as many factors. Every feature has a standard
// deviation of an eighth of its public range and a mean within a tenth of the
// range from its middle, so that hardly any value lies outside; without a range
// they are 1 and near 0. Loadings are random, those of factor a with a variance
// in proportion to 1/a, as factors of real data differ in strength. All sites
// draw from one population and have every value of every view, but for views
// that the plan says a site lacks.
func Simulate(set options.Setup, c method.Simulation) (*method.Simulated, error) {
	p := set.Plan
	if c.Subjects < 1 || c.Held < 1 || !(c.Noise > 0 && c.Noise < 1) {
		return nil, problem.Problem{What: fmt.Sprintf("%d subjects and %d held out, with %v of the variance as noise, cannot be drawn", c.Subjects, c.Held, c.Noise),
			Hint: "at least one of each, and a share between 0 and 1"}
	}
	population, err := imagine(p, set.Rank(), c)
	if err != nil {
		return nil, err
	}
	// No site has such a name, so these streams are nobody's otherwise.
	seed := func(site string) uint64 { return options.Draws(c.Seed, "simulated "+site, 0).Uint64() }
	s := &method.Simulated{Sites: map[string]dataset.Source{}}
	for _, site := range p.Sites {
		var views []string // all, if none is named
		if set.Options.Mechanism != "" {
			for _, k := range set.Options.Patterns.Views(p, site) {
				views = append(views, p.Views[k].Name)
			}
		}
		if s.Sites[site], err = population.Sample(c.Subjects, seed(site), views); err != nil {
			return nil, err
		}
	}
	s.Held, err = population.Sample(c.Held, seed("held out"), nil)
	return s, err
}

// imagine draws a population.
func imagine(p *study.Plan, latent int, c method.Simulation) (*Model, error) {
	digest, err := p.Digest()
	if err != nil {
		return nil, err
	}
	m := &Model{Plan: digest.String(), Study: p.Name, Factors: make([]float64, latent)}
	r := options.Draws(c.Seed, "simulated", 0)
	for _, v := range p.Views {
		view := ModelView{Name: v.Name}
		for _, f := range v.Features {
			low, high := -4.0, 4.0
			if f.Range != nil {
				low, high = f.Range[0], f.Range[1]
			}
			own := ModelFeature{Name: f.Name, Shift: low/2 + high/2, Factor: 8 / (high - low), Noise: c.Noise}
			own.Mean = 0.8 * (2*r.Float64() - 1) // standard deviations
			sum := 0.0
			for a := range latent {
				w := r.NormFloat64() / math.Sqrt(float64(a+1))
				own.Loadings, sum = append(own.Loadings, w), sum+w*w
			}
			for a := range own.Loadings {
				own.Loadings[a] *= math.Sqrt((1 - c.Noise) / sum)
			}
			view.Features = append(view.Features, own)
		}
		m.Views = append(m.Views, view)
	}
	return m, nil
}
