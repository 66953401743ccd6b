package exact

import (
	"math"

	"parley/method"
	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/study"
)

// baseline describes the subjects by site and outcome, from the moments and counts that came before the fit; empty
// where sites are no longer those that gave them.
func (c coordinator) baseline(s *state, sites []fitted.Report) *method.Baseline {
	if c.Options.Counts() { // rows are several people, whom moments count as one
		return &method.Baseline{}
	}
	b, all := &method.Baseline{}, 0.0
	for _, r := range sites {
		n, known := fitted.Subjects(c.Options, r)
		if !known {
			n = math.NaN()
		}
		if s.Moments[r.Site] == nil {
			return &method.Baseline{}
		}
		for _, cells := range c.Cells(s.Moments[r.Site]) {
			n = max(n, cells) // of times, some count in no period
		}
		b.Sites, b.Sizes, all = append(b.Sites, r.Site), append(b.Sizes, n), all+n
	}
	if len(b.Sites) != len(s.Moments) {
		return &method.Baseline{}
	}
	counted := c.counted(s)
	for k, of := range counted.ByClass {
		b.Outcomes = append(b.Outcomes, c.Options.Outcome.Column+" = "+c.Options.Outcome.Levels[k])
		b.Sizes = append(b.Sizes, of.Rows)
	}
	b.Sizes = append(b.Sizes, all)
	number, level := 0, 0
	for _, v := range c.Plan.Views {
		for _, f := range v.Features {
			if f.Kind != study.Category {
				n, mean, sd := s.number(b, counted.ByClass, number)
				b.Number(f.Name, f.Unit, n, mean, sd)
				number++
				continue
			}
			var counts [][]float64
			for range f.Levels {
				var n []float64
				for _, site := range b.Sites {
					n = append(n, s.Moments[site].Levels[level])
				}
				for _, of := range counted.ByClass {
					n = append(n, of.Levels[level])
				}
				counts = append(counts, append(n, counted.Levels[level]))
				level++
			}
			b.Category(f.Name, f.Levels, counts)
		}
	}
	if names, _ := c.Counted(); len(names) > number && names[number] == c.Options.Outcome.Column {
		n, mean, sd := s.number(b, nil, number)
		b.Number(names[number], "", n, mean, sd)
	}
	return b
}

// number is what sums say of a number: at each site, of each class without a standard deviation, and of all.
func (s *state) number(b *method.Baseline, classes []options.ClassSums, i int) (n, mean, sd []float64) {
	add := func(count, average, deviation float64) {
		n, mean, sd = append(n, count), append(mean, average), append(sd, deviation)
	}
	all := glm.NewMoments(1)
	for _, site := range b.Sites {
		a := s.Moments[site]
		own := glm.Moments{N: a.N[i : i+1], Mean: a.Mean[i : i+1], Squares: a.Squares[i : i+1]}
		add(own.N[0], own.Mean[0], math.Sqrt(own.Squares[0]/(own.N[0]-1)))
		all.Merge(&own)
	}
	for _, of := range classes {
		add(of.N[i], of.Sums[i]/of.N[i], math.NaN())
	}
	add(all.N[0], all.Mean[0], math.Sqrt(all.Squares[0]/(all.N[0]-1)))
	return n, mean, sd
}
