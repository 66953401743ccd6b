package fitted

import (
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/factors/ppca"
	"parley/problem"
)

// Limits of when subjects are said to be far as a group: fewer tell nothing, the site verdict
// has the same ratio, and chance goes three standard errors far in one of a thousand groups.
const (
	leastGroup  = 10
	farAsGroup  = 1.3
	groupErrors = 3
)

// newcomers compares the squared distances of subjects from the model, for each observed value,
// with what the model expects. Single subjects of another population are seldom far by
// themselves: of 200 with a view turned round, none.
type newcomers struct {
	view    []int     // of each feature
	times   []float64 // of each view: what the sampling of the fit's subjects adds
	site    []float64 // of each feature: the part of its variance that subjects of a site share
	psi     []float64 // of each feature: its noise variance
	fit     float64   // what the ratio was at the subjects of the fit, at least 1
	known   float64   // subjects of the fit
	n       float64
	sum     float64 // of the distances over their expectations
	squares float64 // of the same
	shared  float64 // of the shares of the distances that are expected of the site
}

// newNewcomers prepares to compare subjects of a population; nil where no site said how well the
// model describes its subjects, as under differential privacy.
func newNewcomers(m *Model, p *ppca.Predictor, who Population) (*newcomers, error) {
	if len(m.Sites) == 0 {
		return nil, nil
	}
	l, md := p.Model()
	base, err := m.noiseAt(m.params(), l, who)
	if err != nil {
		return nil, err
	}
	g := &newcomers{view: l.ViewOf(), times: m.samplingTimes(), psi: md.Psi}
	if g.times == nil { // other fits rest on as many subjects
		g.times = ppca.SamplingTimes(l, p.Rank(), m.subjects(l))
	}
	for _, s := range m.Sites {
		g.known += float64(s.Subjects)
	}
	for j, at := range l.GroupOf() {
		g.site = append(g.site, max(0, md.Psi[j]-base.Noise[at]))
	}
	g.fit, err = m.ownDistance(l, g.known)
	return g, err
}

// ownDistance is how many times as far as expected the subjects of the fit were, at least 1: the
// likeliest model expects them where they are, and one of a typical site nearer. Where single
// values were missing, the entropy of a view is taken for that of as many values.
func (m *Model) ownDistance(l ppca.Layout, subjects float64) (float64, error) {
	if m.LogLik == nil || m.KnowsSites() { // their likelihood is that under models of their own
		return 1, nil
	}
	p, err := ppca.NewPredictor(l, m.params())
	if err != nil {
		return 0, err
	}
	cells, entropy, observed := 0.0, 0.0, 0.0
	for _, pattern := range m.patterns(l) {
		slices.Sort(pattern.Features)
		pattern.Features = slices.Compact(pattern.Features) // of a file that names a view twice
		post, err := p.Given(pattern.Features)
		if err != nil {
			return 0, err
		}
		cells, entropy = cells+pattern.Subjects*float64(len(pattern.Features)), entropy+pattern.Subjects*post.Entropy()
	}
	for _, v := range m.Views {
		observed += v.Values
	}
	if ratio := 1 + 2*(-*m.LogLik*subjects/observed-entropy/cells); ratio > 1 {
		return ratio, nil
	}
	return 1, nil
}

// subjects are those of the fit by the views that they have.
func (m *Model) subjects(l ppca.Layout) (patterns []ppca.Pattern) {
	view := l.ViewOf()
	for _, x := range m.patterns(l) {
		p := ppca.Pattern{Subjects: x.Subjects, Share: 1}
		for _, j := range x.Features {
			p.Views = append(p.Views, view[j])
		}
		slices.Sort(p.Views)
		p.Views = slices.Compact(p.Views)
		patterns = append(patterns, p)
	}
	return patterns
}

// add takes in a subject who is so far from the model.
func (g *newcomers) add(post *ppca.Posterior, far float64) {
	if g == nil || len(post.Observed) == 0 {
		return
	}
	expected, site := 0.0, 0.0
	for i, j := range post.Observed {
		expected += g.times[g.view[j]]
		site += g.site[j] * post.ResidualVar(i) / (g.psi[j] * g.psi[j]) // of (C⁻¹)_jj
	}
	x := far / (expected * g.fit)
	g.n, g.sum, g.squares, g.shared = g.n+1, g.sum+x, g.squares+x*x, g.shared+site/expected
}

// notes says so if the subjects are far as a group. Chance moves their mean distance, and that of
// the subjects of the fit, from which the model has its variances: with heavy tails as much. What
// subjects of a site have in common is one draw for all of them: at worst, where sites differ along
// one direction, its share of the distances times χ² with one degree of freedom.
func (g *newcomers) notes() (notes method.Notes) {
	if g == nil || g.n < leastGroup {
		return nil
	}
	mean, shared := g.sum/g.n, g.shared/g.n
	variance := max(0, g.squares-g.n*mean*mean)/(g.n-1)*(1/g.n+1/g.known) + 2*shared*shared
	if mean > farAsGroup && mean-1 > groupErrors*math.Sqrt(variance) {
		notes.Add(problem.Problem{Where: "data", What: fmt.Sprintf("as a group these %.0f subjects are %.1f times as far from what the model expects as those of the fit (mean squared distance)", g.n, mean),
			Hint: "what is said of them holds less than it says; they may be of another population, or of another site without --new-site, or have other units, a scale that runs the other way, or mixed-up columns or rows"})
	}
	return notes
}
