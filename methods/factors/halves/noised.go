package halves

import (
	"fmt"
	"math"
	"slices"

	"parley/method"
	"parley/methods/factors/fitted"
	"parley/methods/factors/moments"
	"parley/methods/factors/ppca"
	"parley/privacy"
)

// releases are what the sites have released, in the plan's order.
func (c Coordinator) releases(o *noisedState) (sites []string, all []moments.Released, err error) {
	for _, name := range c.Plan.Sites {
		if sums := o.Released[name]; sums != nil {
			r, err := c.noised[name].released(sums, o.Whitenings)
			if err != nil {
				return nil, nil, fmt.Errorf("site %s: %w", name, err)
			}
			sites, all = append(sites, name), append(all, r)
		}
	}
	return sites, all, nil
}

// summed keeps the sums of a round, and asks for the next through the whitenings that those of all
// sites together lead to. Who has left has no part in the model.
func (c Coordinator) summed(s *State) ([]method.Task, method.Info, error) {
	o, at, sites := &s.Noised, slices.Index(kinds, s.Phase), c.Staying(s)
	all, err := method.Answers[privacy.Noised](s.Inbox, sites)
	if err != nil {
		return nil, nil, err
	}
	before := o.Released
	o.Released = map[string][]*privacy.Noised{}
	for i, name := range sites {
		o.Released[name] = append(before[name], all[i])
	}
	if at == len(kinds)-1 {
		return c.fitNoised(s)
	}
	if o.Whitenings[at], err = c.guide(s, at, sites); err != nil {
		return nil, nil, err
	}
	task := sumTask{Whitenings: o.Whitenings[at]}
	tasks, err := c.Ask(s, kinds[at+1], func(string) (any, error) { return task, nil })
	return tasks, nil, err
}

// guide are the whitenings that overviews, or coarse sums, of the sites lead to.
func (c Coordinator) guide(s *State, at int, sites []string) (whitenings []moments.Whitening, err error) {
	if at == 0 {
		var overviews []moments.Overviewed
		for _, name := range sites {
			overviews = append(overviews, c.noised[name].overviewed(s.Noised.Released[name][0]))
		}
		return moments.Whitenings(c.Layout, overviews)
	}
	_, releases, err := c.releases(&s.Noised)
	if err != nil {
		return nil, err
	}
	for _, x := range moments.Pool(releases) {
		whitening, err := x.RefineWhitening()
		if err != nil {
			return nil, fmt.Errorf("views %v: %w", x.Coarse.Views, err)
		}
		whitenings = append(whitenings, whitening)
	}
	return whitenings, nil
}

// fitNoised makes the model of what all sites released. Nothing after this costs anything.
func (c Coordinator) fitNoised(s *State) ([]method.Task, method.Info, error) {
	s.Phase = method.Done
	sites, releases, err := c.releases(&s.Noised)
	if err != nil {
		return nil, nil, err
	}
	repaired, err := moments.Project(c.Layout, releases, c.Plan.Seed)
	if err != nil {
		return nil, nil, fmt.Errorf("repairing the sums: %w", err)
	}
	fit, err := repaired.Fit(c.Factors)
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	if s.Doubt, err = repaired.Uncertainty(fit); err != nil {
		return nil, nil, err
	}
	if err := c.Finish(s, &fit.Params); err != nil {
		return nil, nil, err
	}
	if s.Noised.Pooled, _, _, err = ppca.NewExplained(c.Layout, s.Model, repaired.Blocks()); err != nil {
		return nil, nil, err
	}
	if s.Noised.Gains, err = c.gains(s); err != nil {
		return nil, nil, err
	}
	told := make([][]moments.NoisyMoments, len(releases))
	for i := range releases {
		if told[i], err = repaired.Unrepaired(releases[i]); err != nil {
			return nil, nil, fmt.Errorf("site %s: %w", sites[i], err)
		}
	}
	s.Noised.Apart = repaired.Apart(told, s.Model)
	if s.Noised.Biases, err = c.biases(repaired, s.Model, sites, releases, told); err != nil {
		return nil, nil, err
	}
	subjects, _ := subjectsOf(releases...)
	info := method.Info{"iterations": float64(fit.Iterations), "subjects, noised": math.Round(subjects)}
	return nil, info, nil
}

// biases are those of predictions at single sites; nil where nothing tells of any.
func (c Coordinator) biases(repaired *moments.ProjectedMoments, model *ppca.Params, sites []string,
	releases []moments.Released, told [][]moments.NoisyMoments) (*fitted.Biases, error) {
	found, err := repaired.Biases(told, model)
	if err != nil || math.IsNaN(found.All) {
		return nil, err
	}
	out := &fitted.Biases{NewSite: found.All}
	for i, name := range sites {
		n, _ := releases[i].Subjects()
		at := fitted.SiteBias{Name: name, Subjects: max(1, n), Variance: found.All}
		if found.Sites[i] > found.All {
			at.Variance = found.Sites[i]
		}
		for k, v := range c.Plan.Views {
			if !slices.ContainsFunc(releases[i], func(x moments.PatternSums) bool {
				return slices.Contains(x.Fine.Views, k)
			}) {
				at.Lacks = append(at.Lacks, v.Name)
			}
		}
		out.Sites = append(out.Sites, at)
	}
	return out, nil
}

// subjectsOf is the noised number of subjects behind some releases, without bias and so below 0
// at times, and the standard deviation of the noise in it.
func subjectsOf(releases ...moments.Released) (n, sd float64) {
	for _, r := range releases {
		count, variance := r.Subjects()
		n, sd = n+count, math.Hypot(sd, math.Sqrt(variance))
	}
	return n, sd
}
