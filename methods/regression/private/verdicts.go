package private

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"parley/methods/regression/fitted"
	"parley/methods/regression/glm"
	"parley/methods/regression/predict"
	"parley/problem"
)

// verdicts are what is to be known of the fit before anything is read from it.
func (c coordinator) verdicts(s *state) (all []glm.Finding) {
	var said []glm.Finding
	for i, f := range s.Fits {
		g := c.gram(s, i)
		of := slices.Concat(c.unlike(s, i), c.misdescribed(s, g), c.hidden(s, i, g), c.unsized(f, g))
		if f.Noise > 0 { // else no gradient is left
			last := f.last(g, g.prior)
			of = slices.Concat(c.unsettled(f, g, last), of, c.divided(f, g, last), c.drowned(f, g, last, s.Units.Open))
		}
		for _, says := range of {
			if !slices.Contains(said, says) { // the pair stands in what is its title
				said = append(said, says)
				end := len(says.Title) - 1
				says.Title = says.Title[:end] + c.against(s, i) + says.Title[end:]
				all = append(all, says)
			}
		}
	}
	return all
}

// names are those of the columns.
func (c *common) names() []string {
	names := c.Encoding.Features()
	if c.columns.offset != nil {
		names = slices.Insert(names, len(names)-1, c.columns.offset.Name)
	}
	return names
}

// levels are the classes of a pair.
func (c coordinator) levels(s *state, i int) (first, second string) {
	if c.columns.classes < 2 {
		return c.Options.Outcome.Levels[0], c.Options.Outcome.Levels[1]
	}
	return c.Options.Outcome.Levels[s.Base], c.Options.Outcome.Levels[c.columns.pair(s.Base, i)]
}

// against names a pair, where there are several.
func (c coordinator) against(s *state, i int) string {
	if c.columns.classes < 2 {
		return ""
	}
	base, class := c.levels(s, i)
	return fmt.Sprintf(" (%s beside %s)", class, base)
}

// unsettled says that the fit was still moving when its rounds ended.
func (c coordinator) unsettled(f *fit, g *gram, last *belief) []glm.Finding {
	step, spread, is := f.unsettled(g, last.covariance)
	if !is {
		return nil
	}
	what := "the log-odds of subjects"
	if c.columns.linear {
		what = "predictions of " + c.Options.Outcome.Column + ", in its scale,"
	}
	return glm.OnConvergence.Say("The fit", fmt.Sprintf(" after %d gradients", f.Round), fmt.Sprintf("the last step "+
		"still moved %s by %.2g, and they are taken to be known within %.2g (root mean squares)", what, step, spread))
}

// misdescribed says which numbers are not as the model of rows has them, by which noise and clipping are corrected:
// mostly one value, farther from their centre than their scale says or far less, or of a scale that noise hides.
func (c coordinator) misdescribed(s *state, g *gram) []glm.Finding {
	all, names := c.names(), []string(nil)
	add := func(columns []int, why func(j int) string) {
		for _, j := range columns {
			names = append(names, all[j]+" ("+why(j)+")")
		}
	}
	off := func(j int) string {
		return fmt.Sprintf("a root mean square of %.1f scales, where it should be about 1",
			math.Sqrt(g.Matrix.At(j, j)/g.Rows))
	}
	var unknown []int
	if !c.columns.linear { // whose clipping has no bias, whatever features are like
		add(g.odd(), func(int) string { return "few subjects have much of its spread" })
		wide := g.wide()
		if add(wide, off); wide == nil && !c.learned() {
			add(g.narrow(), off)
		}
	}
	for k, j := range c.columns.numbers[:c.columns.scaled] {
		if c.learned() && s.Units.Open[k] >= unknownScale {
			unknown = append(unknown, j)
		}
	}
	if names == nil && unknown != nil {
		for _, j := range unknown {
			names = append(names, all[j])
		}
		return glm.OnNoise.Say("how widely features vary:", problem.Names(names)+". The fit works in units that it "+
			"had to guess, and effects of these numbers, and with them those of others, can come out too small or "+
			"too large.")
	}
	add(unknown, func(int) string { return "noise hides how widely it varies" })
	return glm.OnNumbers.Of(problem.Names(names))
}

// unsized says that the size of effects is lost in the noise.
func (c coordinator) unsized(f *fit, g *gram) []glm.Finding {
	if !f.unsized(g, g.prior) {
		return nil
	}
	return glm.OnNoise.Say("how large effects are.", "They are at least as large as the plan's prior expects, but by "+
		"how much is open: estimates can be much too small or too large, all by about the same factor. Signs, ratios "+
		"of estimates and predictions are better known. A scale in the plan that is far wider than a number's values "+
		"makes its effect large, too.")
}

// hidden says that the rarer class is lost in the noise.
func (c coordinator) hidden(s *state, i int, g *gram) []glm.Finding {
	cases, noise, is := s.Fits[i].lost(g)
	if !is || c.columns.linear {
		return nil
	}
	other, level := c.levels(s, i)
	if cases < 0 {
		cases, level = -cases, other
	}
	return glm.OnNoise.Say(fmt.Sprintf("those with %s = %s:", c.Options.Outcome.Column, level), fmt.Sprintf("the "+
		"model expects about %.0f of %.0f subjects, and the noise of all gradients together weighs as much as %.0f "+
		"of these. Estimates are then too close to even odds and to no effect: %s can be several times rarer than "+
		"predicted. Do not rely on the estimates.", cases,
		g.Subjects, noise, level))
}

// drowned says that a number is mostly one value, as a few far outcomes alone make it, or does not vary as histograms
// told; or that noise leaves its predictions about as open as features make them differ. Its scale is the last of those
// that are open so far.
func (c coordinator) drowned(f *fit, g *gram, last *belief, open []float64) []glm.Finding {
	if !c.columns.linear {
		return nil
	}
	_, _, _, varies := g.activations(f.Mean)
	name, told := c.Options.Outcome.Column, f.Dispersion+varies // of 1
	normal, _, _ := squaresTo(hardlyFar)
	var all []glm.Finding
	if varies < 1.5*g.spread(last.covariance) {
		all = glm.OnNoise.Say("most of what features say of "+name+".", "It leaves predictions open by nearly as "+
			"much as they differ between subjects, so that they may be no better than the mean alone.")
	}
	const far = 9                             // however open the scale is
	switch unsure := 4 * open[len(open)-1]; { // two deviations of its logarithm
	case len(g.law) > 0 && floats.Max(g.law) > mostlyOne:
		all = append(all, glm.OnOutcome.Say("most of "+name+" is about one value")...)
	case tailOf(g.law, g.edges, hardlyFar).square < fewFar*normal:
		all = append(all, glm.OnOutcome.Say("a few of "+name+" lie far from all others")...)
	case all == nil && (told > far || math.Abs(math.Log(told)) > math.Log(glm.OnOutcome.Matters)+unsure):
		all = glm.OnOutcome.Say(fmt.Sprintf("what features say of %s and what they leave have %.2g times the "+
			"variance", name, told))
	}
	return all
}

// An outcome is mostly one value if a bin, of about half a deviation, has more than such a share. A few outcomes have
// most of its variance where clipping at so many deviations leaves less than this share of what it leaves of normal
// ones: intervals of 90 % of log-normal lengths of stay and costs then held .77.
const mostlyOne, hardlyFar, fewFar = 0.6, 2, 0.8

// divided says which features are not told apart. Where the size of all effects is lost, nothing more is said.
func (c coordinator) divided(f *fit, g *gram, last *belief) []glm.Finding {
	if f.unsized(g, g.prior) {
		return nil
	}
	normal := make([]glm.Normal, 3)
	for i, of := range []*mat.SymDense{last.covariance, last.least(f, g), g.prior.known(f.Narrow).covariance} {
		var err error
		if normal[i], err = glm.NewNormal(f.Mean, glm.Lower(of)); err != nil {
			return nil // sums of a hostile site can be of any size
		}
	}
	return fitted.Divided(&c.Encoding, normal[0], normal[1], normal[2])
}

// unlike says how sites differ, by gradients that they have released; nothing where they do not, as
// far as their noise lets one see.
func (c coordinator) unlike(s *state, i int) []glm.Finding {
	sites := c.surpluses(s, i)
	one := c.columns.width() - 1
	if by := differ(sites, one, 1); by != nil {
		at, way := predict.Farthest(by)
		size, what := math.Abs(by[at])/sites[at].Rows, ""
		if c.columns.linear {
			_, unit := unit(c.scale(&s.Units), c.columns.scaled)
			what = fmt.Sprintf("mean of %s is about %.2g", c.Options.Outcome.Column, size*unit*s.Fits[i].Dispersion)
		} else {
			_, level := c.levels(s, i)
			what = fmt.Sprintf("share of %s is about %.0f points", level, 100*size)
		}
		return glm.OnSites.Say("Outcomes differ between sites by more than the features explain", fmt.Sprintf("At %s "+
			"the %s %s than the model expects. ", c.Plan.Sites[at], what, way),
			"make the site a feature, a category that says where a subject is from")
	}
	var names []string
	for j, name := range c.names()[:one] {
		if by := differ(sites, j, one); by != nil {
			at, way := predict.Farthest(by)
			names = append(names, fmt.Sprintf("%s (%s at %s)", name, way, c.Plan.Sites[at]))
		}
	}
	if names == nil {
		return nil
	}
	return glm.OnSites.Say("Sites differ in the effect of "+problem.Names(names), "",
		"fit the sites that agree, or make what sites differ by a feature")
}

// surpluses are those of the plan's sites; nil of a site that left.
func (c coordinator) surpluses(s *state, pair int) []*surplus {
	out := make([]*surplus, len(c.Plan.Sites))
	for i, name := range c.Plan.Sites {
		if t, p, sum := s.Sums[taskTotals][name], s.Sums[taskProducts][name], s.Fits[pair].Late.Sums[name]; t != nil &&
			p != nil && sum != nil {
			out[i] = s.Fits[pair].Late.of(c.gramOf(t, p, s, pair), sum)
		}
	}
	return out
}
