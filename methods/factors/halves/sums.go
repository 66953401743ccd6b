package halves

import (
	"fmt"

	"parley/methods/factors/between"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// sayFit adds the numbers of a [ppca.Description] to what is released: upper bounds.
func sayFit(r *privacy.Request, h options.Setup) {
	d := h.Layout.Features()
	sets := 1 << min(h.Layout.Views(), 16) // of views, each in half of them
	half := max(sets/2, 1)
	r.Say(2*sets, "number of subjects, for each set of views that are described together")
	r.Say((d+3)*sets/2+1, "which features these have")
	bound, most, along := h.Bound(nil), h.Most, ""
	if !bound.Triangle(d) {
		most = max(most, d*(1+bound.Along.Count))
		along = fmt.Sprintf("or, where these are more than %d numbers, sums of squares, and of products of each "+
			"feature with %d combinations of features that the task names; ", h.Most, bound.Along.Count)
	}
	r.Say(min(d*(d+5)/2*half, most*sets+3*d*half), fmt.Sprintf("mean and scatter matrix of each set, or principal "+
		"directions that give it; %sof fewer than %d subjects only together with others, if the site has others, "+
		"which several exchanges together may tell apart; where subjects are fewer than features, whoever has a "+
		"person's values can tell from it whether the person is among them", along, ppca.Fewest))
	r.Say(2+d*half, "number of missing values that were filled in, and of each feature of each set; "+
		"log-likelihood of the subjects")
}

// describe is the site's answer. The model fills what subjects lack, if there is one.
func describe(h options.Setup, model *ppca.Params, blocks []ppca.Block) (*ppca.Description, error) {
	bound, given := h.Bound(model), [][]int(nil)
	if h.Options.OnePopulation() {
		if h.Plan.Privacy.Secure() || h.Options.Rounds > 0 { // what sets that add up lack, exchanges fill
			given = h.TotalSets()
		}
		if model == nil {
			model = ppca.Uncorrelated(h.Layout)
		}
	}
	return ppca.Describe(h.Layout, model, blocks, given, bound)
}

// modelAt is the one by which a site fills cells, about a mean of its own where sites have such.
func (t *FitTask) modelAt(h options.Setup) (*ppca.Params, error) {
	model, err := t.model(h)
	if err == nil && t.Offset != nil {
		err = t.Offset.CheckMean(h.Layout)
	}
	if err != nil {
		return nil, err
	}
	return atSite(model, t.Offset), nil
}

// Sums is what sites say of their rows on a common scale: first, or, if a number of factors is given, once a model of
// so many has settled. Again says whether another model would have them say something else.
func Sums(set options.Setup, scale *ppca.Scale, rows []*ppca.RowSums,
	rank int) (sites [][]ppca.Block, again bool, err error) {
	c, o := Coordinator{Setup: set.With(max(rank, 1))}, new(fitState)
	var sent *ppca.Params
	var means *between.Offsets
	for {
		got := &answered{names: set.Plan.Sites}
		for i, sums := range rows {
			model := atSite(sent, means.At(set.Plan.Sites[i]))
			said, err := describe(c.Setup, model, sums.In(scale))
			if err == nil {
				err = take(c.Setup, said, c.Bound(sent).Along)
			}
			if err != nil {
				return nil, false, err
			}
			got.add(c.Layout, said)
		}
		if rank == 0 || !got.again() || len(o.LogLik) >= set.Options.Rounds {
			return got.sites, got.again(), nil
		}
		found, err := c.exchange(o, got, sent, sent)
		if err != nil || sent != nil && found.moved < settledBy {
			return got.sites, got.again(), err
		}
		sent, means = found.next, found.about
	}
}

// atSite is a model about the means of one site.
func atSite(model *ppca.Params, offset *between.SiteOffset) *ppca.Params {
	if model == nil || offset == nil {
		return model
	}
	p := model.Clone()
	for _, j := range p.Features {
		p.Mu[j] += offset.Mean[j]
	}
	return &p
}
