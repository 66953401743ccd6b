package federated

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// Site is a site's half of a federated study.
func Site(set options.Setup, name string) *halves.Site {
	return halves.NewSite(set, name, siteWay{set})
}

// siteWay is a site's part of the exchanges.
type siteWay struct{ options.Setup }

func (h siteWay) Request(string) (privacy.Request, error) {
	d := h.Layout.Features()
	var r options.Contents
	sets := 1 << min(h.Layout.Views(), 16) // of views, each in half of them
	half := max(sets/2, 1)
	r.Say(2*sets, "number of subjects, for each set of views that are described together")
	r.Say((d+2)*sets/2+1, "which features these have")
	r.Say(min(d*(d+5)/2*half, ppca.LargestExact*sets+3*d*half), fmt.Sprintf("mean and scatter matrix of each set, "+
		"or principal directions that give it; of fewer than %d subjects only together with others, if the site has others, "+
		"which several exchanges together may tell apart; where subjects are fewer than features, whoever has a person's "+
		"values can tell from it whether the person is among them", ppca.Fewest))
	r.Say(2+d*half, "number of missing values that were filled in, and of each feature of each set; "+
		"log-likelihood of the subjects")
	return r.Request, nil
}

func (h siteWay) Run(ctx context.Context, t method.Task, s *privacy.Session, half *halves.Site) (any, error) {
	if t.Kind != options.TaskFit {
		return nil, fmt.Errorf("unknown task %q", t.Kind)
	}
	return halves.Open(t, func(task *FitTask) (any, error) {
		return half.Exact(ctx, s, task.Scale.Effects, func(*options.RowSums, dataset.Source) (any, error) {
			blocks, _, err := half.Scaled(&task.Scale)
			if err != nil {
				return nil, err
			}
			model, err := h.model(task)
			if err != nil {
				return nil, err
			}
			return h.sums(blocks, model)
		})
	})
}

// sums is the site's answer. The model fills what subjects lack, if there is one.
func (h siteWay) sums(blocks []ppca.Block, model *ppca.Params) (*FitAnswer, error) {
	said, err := h.describe(model, blocks)
	if err != nil {
		return nil, fmt.Errorf("adding up the site's subjects: %w", err)
	}
	answer := &FitAnswer{Filled: said.Filled, LogLik: said.LogLik}
	for i := range said.Blocks {
		answer.Blocks = append(answer.Blocks, options.PackBlock(&said.Blocks[i]))
	}
	return answer, nil
}

func (h siteWay) describe(model *ppca.Params, blocks []ppca.Block) (*ppca.Description, error) {
	if h.Plan.Privacy.Secure() {
		return ppca.Totals(h.Layout, model, blocks, h.Options.Minimum, totalSets(h.Setup))
	}
	return ppca.Describe(h.Layout, model, blocks, h.Options.Minimum)
}

// model is the one by which the site fills cells, about a mean of its own where sites have such.
func (h siteWay) model(t *FitTask) (*ppca.Params, error) {
	if t.Model == nil {
		return nil, nil
	}
	model, err := t.Model.Unpack(h.Layout)
	if err != nil {
		return nil, err
	}
	if err := h.CheckRank(model.Rank); err != nil {
		return nil, err
	}
	if t.Offset != nil {
		if err := t.Offset.CheckMean(h.Layout); err != nil {
			return nil, err
		}
	}
	return atSite(model, t.Offset), nil
}

// Sums is what sites say of their rows on a common scale, of those sites that have enough subjects to speak:
// first, or, if a number of factors is given, once what subjects lack was filled by a model of so many that has
// settled. Filled is how many values they lack.
func Sums(set options.Setup, scale *ppca.Scale, rows []*options.RowSums, rank int) (sites [][]ppca.Block, filled float64, err error) {
	c, o := way{halves.Common{Setup: set.With(max(rank, 1))}}, &record{Fit: new(outcome)}
	var sent *ppca.Params
	var means *options.SiteMeans
	for {
		var names []string
		var logLik, subjects float64
		sites, filled = nil, 0
		for i, sums := range rows {
			blocks, _, err := sums.Scaled(set, &options.Scale{Shift: scale.Shift, Factor: scale.Factor})
			if err != nil {
				return nil, 0, err
			}
			answer, err := (siteWay{c.Setup}).sums(blocks, atSite(sent, means.At(set.Plan.Sites[i])))
			if err != nil {
				return nil, 0, err
			}
			own, err := answer.blocks(set)
			if err != nil {
				return nil, 0, err
			}
			if len(own) > 0 {
				names, sites = append(names, set.Plan.Sites[i]), append(sites, own)
			}
			filled, logLik = filled+answer.Filled, logLik+answer.LogLik
			for k := range own {
				subjects += own[k].N
			}
		}
		if rank == 0 || filled == 0 || len(o.LogLik) >= set.Options.Rounds {
			return sites, filled, nil
		}
		found, offsets, err := fitSums(c.Setup, sites, sent)
		if err != nil {
			return nil, 0, err
		}
		if means = nil; offsets != nil {
			means = options.PackSiteMeans(names, offsets)
		}
		next := &found.Params
		if sent != nil {
			o.LogLik = append(o.LogLik, logLik/subjects)
			if next = c.next(o, sent, &found.Params); o.Fit.Moved < settledBy {
				return sites, filled, nil
			}
		}
		sent = next
	}
}

// atSite is a model about the means of one site.
func atSite(model *ppca.Params, offset *options.Offset) *ppca.Params {
	if model == nil || offset == nil {
		return model
	}
	p := model.Clone()
	for _, j := range p.Features {
		p.Mu[j] += offset.Mean[j]
	}
	return &p
}
