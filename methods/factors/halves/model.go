package halves

import (
	"cmp"
	"context"
	"fmt"

	"parley/dataset"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
)

// Result implements [method.Coordinator]: it names what was fitted, and draws it.
func (c Coordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*State)
	if s.Phase != method.Done {
		return nil, fmt.Errorf("the study is not done: it waits for %q", s.Phase)
	}
	m, err := c.model(s)
	if err != nil {
		return nil, err
	}
	files, err := m.Files()
	if err != nil {
		return nil, err
	}
	if c.Private() {
		return c.noisedResult(s, m, files)
	}
	return c.exactResult(s, m, files), nil
}

// reports lists the sites' assessments in the plan's order.
func (c Coordinator) reports(s *State) (sites []report.Site) {
	for _, name := range c.Plan.Sites {
		if r := s.Reports[name]; r != nil {
			sites = append(sites, report.Site{Name: name, Assessment: r})
		}
	}
	return sites
}

// model names what the coordinator fitted.
func (c Coordinator) model(s *State) (*fitted.Model, error) {
	m, err := fitted.NewModelFile(c.Of(s).Frame, s.Model, &s.Scale.Scale, s.Strengths)
	if err != nil {
		return nil, err
	}
	m.Options = c.Of(s).Options
	if c.Private() {
		c.describeNoised(s, m)
		return m, nil
	}
	m.PutSpread(s.Exact.Fit.Spread.Loadings, s.Exact.Fit.Spread.Means)
	if s.SiteMeans != nil {
		m.PutSiteMeans(c.Layout, s.SiteMeans)
	}
	if s.HeldOut != nil {
		m.PutHeldOut(s.HeldOut)
	}
	if s.Adjusted != nil {
		m.PutAdjusted(c.Options.Adjust, s.Adjusted)
		m.Warn(m.AdjustmentVerdicts()...)
	}
	if s.OfTotals != nil {
		m.Explains(&s.OfTotals.Explained)
		values := float64(s.OfTotals.Patterns[0].Subjects * c.Layout.Features())
		if err = report.VerdictsOfTotals(c.Of(s).Frame, m, s.Model, s.Exact.Fit.Filled/values); err != nil {
			return nil, err
		}
		m.LogLik = &s.LogLik
	}
	if sites := c.reports(s); len(sites) > 0 {
		m.LogLik = &s.LogLik
		report.AddSites(m, sites)
		var all []ppca.Pattern
		for _, site := range sites {
			all = append(all, site.Patterns...)
		}
		for k, times := range ppca.SamplingTimes(c.Layout, c.Of(s).Factors, all) {
			m.Views[k].SamplingTimes = cmp.Or(m.Views[k].SamplingTimes, times)
		}
		m.PutSiteNoise(s.Noise)
		if err := report.Verdicts(c.Of(s).Frame, m, s.Model, sites, s.Apart); err != nil {
			return nil, err
		}
	}
	m.Warn(compositionVerdict(m, s.Exact.Fit.Compositions), discordVerdict(c.Setup, s.Exact.Fit.Discords))
	return m, nil
}

// siteNoise is how the noise of the sites differs that said how the model describes them; nil where it does not.
func (c Coordinator) siteNoise(s *State) (map[string][]between.Noise, error) {
	predictor, err := ppca.NewPredictor(c.Layout, s.Model)
	if err != nil {
		return nil, err
	}
	sites := c.reports(s)
	sums := make([]between.SiteNoise, len(sites))
	for i, site := range sites {
		sums[i] = between.SiteNoise{Sums: site.Noise, Patterns: site.Patterns, OwnMean: s.SiteMeans != nil}
	}
	found, err := between.Estimate(predictor, sums)
	if err != nil || found == nil {
		return nil, err
	}
	out := map[string][]between.Noise{}
	for i, site := range sites {
		out[site.Name] = found[i]
	}
	return out, nil
}

// Share gives every site the whole model, which is the study's result, and its own means
// and noise.
func (c Coordinator) Share(ms method.State, site string) ([]byte, error) {
	s := ms.(*State)
	return wire.Marshal(fitted.AssessTask{Scale: *s.Scale, Model: *s.Model,
		Offset: s.SiteMeans.At(site), Noise: fitted.NoiseTimes(s.Noise[site])})
}

// Report projects the site's own subjects on the factors. It is made at the
// site, for the site, from the shared model and its own rows.
func (h *Site) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	share, predictor, scale, err := fitted.Shared(h.Layout, shared)
	if err != nil {
		return nil, err
	}
	described, err := h.described(ctx, data)
	if err != nil {
		return nil, err
	}
	adjusted, err := h.adjusted(share.Scale.Effects, described)
	if err != nil {
		return nil, err
	}
	result, err := report.Subjects(ctx, predictor, share.Offset != nil, scale, adjusted)
	if err == nil && h.outliers != nil {
		report.AddOutliers(h.Frame, result, h.outliers.Found)
	}
	return result, err
}

// Assess asks every site about the final model. The study goes on without those that do not answer.
func (c Coordinator) Assess(s *State) ([]method.Task, error) {
	tasks, err := c.Ask(s, options.TaskAssess, func(site string) (any, error) {
		return fitted.AssessTask{Scale: *s.Scale, Model: *s.Model, Offset: s.SiteMeans.At(site)}, nil
	})
	return method.Optional(tasks), err
}

// Finish turns the final model to the axes on which fits of the same data agree.
func (c Coordinator) Finish(s *State, model *ppca.Params) error {
	var err error
	if s.Model, s.Strengths, _, err = ppca.Canonical(c.Layout, model); err != nil {
		return err
	}
	return s.Model.Check(c.Layout)
}

// assessed keeps what the sites said; then the study is done.
func (c Coordinator) assessed(s *State) ([]method.Task, method.Info, error) {
	sites := c.Staying(s)
	all, err := method.Answers[fitted.Assessment](s.Inbox, sites)
	if err != nil {
		return nil, nil, err
	}
	for i, site := range sites {
		s.Reports[site] = all[i]
	}
	s.Phase = method.Done
	if len(all) == 0 {
		return nil, nil, nil
	}
	if sum := fitted.Together(all); s.LogLik == 0 { // no total has told it
		s.LogLik = sum.LogLik / float64(sum.Subjects())
	}
	s.Noise, err = c.siteNoise(s)
	return nil, method.Info{"log-likelihood per subject": s.LogLik}, err
}

// assess says how well the model describes the site, and how many subjects were left out.
func (h *Site) assess(ctx context.Context, t *fitted.AssessTask, sums *ppca.RowSums,
	data dataset.Source) (*fitted.Assessment, error) {
	blocks, err := h.Scaled(&t.Scale)
	if err = cmp.Or(err, h.CheckRank(t.Model.Rank)); err != nil {
		return nil, err
	}
	a, err := fitted.Assess(ctx, h.Frame, t, sums.Patterns, blocks, &t.Scale.Scale, data)
	if err != nil || h.outliers == nil {
		return a, err
	}
	a.Outlying = float64(len(h.outliers.Found))
	for _, o := range h.outliers.Found {
		for _, k := range o.Views {
			a.Outliers[k]++
		}
	}
	return a, nil
}
