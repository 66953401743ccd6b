package halves

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"parley/figure"
	"parley/method"
	"parley/methods/factors/assess"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
)

// exactResult draws the model that is in these files.
func (c Coordinator) exactResult(s *State, m *fitted.Model, files []method.File) *method.Result {
	o := &s.Exact
	settled := report.Convergence(o.Fit.Converged)
	settled.Items = append(settled.Items, figure.Item{Note: startsNote(o.Fit)})
	if n := len(o.Latent); n > 0 {
		settled.Items = append(settled.Items, figure.Item{Note: &figure.Note{Title: "The study chose " +
			figure.Plural(o.Latent[n-1], "factor"),
			Text: "Models of 1, 2 and more factors were fitted to nine tenths of the subjects, and judged by how " +
				"likely they make the others. No more factors made them likelier by more than a standard error."}})
	}
	if note := fillNote(o.Fit, len(o.LogLik)); note != nil {
		settled.Items = append(settled.Items, figure.Item{Note: note})
	}
	if s.OfTotals != nil {
		return report.OfTotals(c.Of(s).Frame, m, files, s.OfTotals, settled)
	}
	sites := c.reports(s)
	if len(sites) == 0 {
		var about []figure.Section
		if m.Adjusts() {
			about = append(about, m.AdjustedSection())
		}
		return report.Unassessed(c.Of(s).Frame, m, files, len(c.Staying(s)), about...)
	}
	return report.Assessed(c.Of(s).Frame, m, files, sites, len(o.LogLik), &settled)
}

// startsNote says how many starts ended at the best.
func startsNote(f *outcome) *figure.Note {
	if f.AtBest == f.Starts {
		text := fmt.Sprintf("The fit began at %d places, most of them drawn, and all ended at the same likelihood.",
			f.Starts)
		if f.Filled > 0 {
			text += " That was before the last models filled what subjects lack: another maximum is possible."
		}
		return &figure.Note{Title: "All starts ended at the same model", Text: text}
	}
	return &figure.Note{Title: fmt.Sprintf("%d of %d starts ended at the model", f.AtBest, f.Starts),
		Text: "The likelihood has several maxima, and this is the highest that was found. Data that do not determine " +
			"so many factors often have them."}
}

// fillNote says how far the exchanges have come in which sites filled cells, or told of their scatter, by a common
// model, n of them; nil if one exchange is all.
func fillNote(f *outcome, n int) *figure.Note {
	if f.Filled == 0 && !f.Along {
		return nil
	}
	note := &figure.Note{}
	if f.Along {
		note.Text = "Features and subjects are so many that sites send variances, and products of each feature with " +
			"some combinations of them. "
	}
	if f.Filled > 0 {
		note.Text += fmt.Sprintf("What subjects lack, %.0f values, was filled. ", f.Filled)
	}
	switch {
	case n == 0:
		note.Title, note.Warning = "The sums rest on no model", true
		note.Text += "The plan has rounds: 0, so that cells are filled by the means of features, and combinations " +
			"are drawn: the fit is behind that to all rows, and with more rounds it is not."
		return note
	case f.Moved < settledBy:
		note.Title = "The exchanges have settled"
	default:
		note.Title, note.Warning = "The exchanges have not settled: give the plan more rounds", true
	}
	note.Text += fmt.Sprintf("This followed the model of all sites %d times, and the last time moved it by about "+
		"%.1g nats a subject.", n, f.Moved)
	return note
}

// draws are those by which subjects are divided to leave some out.
func (c Coordinator) draws() *rand.Rand { return options.Draws(c.Plan.Seed, "", 0) }

// cyclesOfSpread bounds the fit that tells how the means of sites differ where the model takes them for
// samples of one population.
const cyclesOfSpread = 50

// answered is what the sites said of their subjects.
type answered struct {
	names                    []string
	sites                    [][]ppca.Block
	known                    [][]ppca.Block // of these, what is not filled alone
	along                    bool           // some scatter is told of along directions
	filled, logLik, subjects float64
}

func (a *answered) add(l ppca.Layout, d *ppca.Description) {
	a.sites, a.known = append(a.sites, d.Blocks), append(a.known, ppca.Known(l, d.Blocks))
	a.filled, a.logLik = a.filled+d.Filled, a.logLik+d.LogLik
	for i := range d.Blocks {
		a.subjects += d.Blocks[i].N
	}
	a.along = a.along || slices.ContainsFunc(d.Blocks, told)
}

// again says whether another model would have sites say something else.
func (a *answered) again() bool { return a.filled > 0 || a.along }

// answered reads what the sites said, and of sites that have left since what they said before.
func (c Coordinator) answered(s *State) (*answered, error) {
	names := c.Staying(s)
	all, err := method.Answers[ppca.Description](s.Inbox, names)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(c.Plan.Sites), func(site string) bool {
		_, said := s.Exact.Said[site]
		return !said || !slices.Contains(s.Left, site)
	})
	before, err := method.Answers[ppca.Description](s.Exact.Said, left)
	if err != nil {
		return nil, err
	}
	got := &answered{names: append(names, left...)}
	for _, a := range append(all, before...) {
		got.add(c.Layout, a)
	}
	if !c.Totals {
		return got, nil
	}
	said, task := append(all, before...), &FitTask{Scale: *s.Scale}
	few := c.Options.Rounds == 0 && got.subjects < float64(c.Layout.Features()) // whose sums are dearer in full
	if len(said) > 1 && !few && c.Triangles() {
		if total, err := totalOf(c.Setup, said, task); err == nil && take(c.Setup, total, nil) == nil {
			got.sites, got.filled, got.logLik = [][]ppca.Block{total.Blocks}, total.Filled, total.LogLik
			return got, nil
		} // else no secure sum has room for it
	}
	got.sites = [][]ppca.Block{ppca.Merge(slices.Concat(got.sites...))}
	return got, nil
}

// fitted fits one model to the sums of all sites. Where sites had to fill cells, they are asked again, and
// fill them by this model.
func (c Coordinator) fitted(s *State) ([]method.Task, method.Info, error) {
	got, err := c.answered(s)
	if err != nil {
		return nil, nil, err
	}
	o := &s.Exact
	if o.Last {
		return nil, nil, c.endTotals(s, got)
	}
	sent, asked := o.Sent, c
	if c.Options.Latent == options.Select {
		if len(o.Latent) == 0 {
			q, err := assess.ChooseRank(c.Layout, got.sites, false, c.Factors, c.draws())
			if err != nil {
				return nil, nil, err
			}
			o.Latent = []int{q}
		}
		c.Setup = c.With(o.Latent[len(o.Latent)-1])
	}
	start := sent
	if len(o.LogLik) == 0 {
		start = nil // cells have been filled by no common model until now
	}
	found, err := c.exchange(o, got, sent, start)
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	s.SiteMeans = found.apart
	if err := c.Complete(ppca.Observed(c.Layout, slices.Concat(got.known...))); err != nil {
		return nil, nil, err
	}
	s.Model = &found.Params
	info := method.Info{"iterations": float64(found.Iterations),
		"log-likelihood per subject of what the sites said": found.LogLik / found.Subjects}
	if s.SiteMeans != nil {
		info["means between sites, largest sd"] = slices.Max(s.SiteMeans.SD(c.Layout))
	}
	last := &outcome{Converged: found.Converged, Filled: got.filled, Starts: found.Starts, AtBest: found.AtBest,
		Along: got.along, Moved: found.moved}
	if found.Starts == 0 && o.Fit != nil {
		last.Starts, last.AtBest = o.Fit.Starts, o.Fit.AtBest
	}
	o.Fit = last
	if sent != nil {
		info["log-likelihood per subject"], info["single cells filled"] = got.logLik/got.subjects, got.filled
	}
	more := got.again() && len(o.LogLik) < c.Options.Rounds
	settled := sent != nil && last.Moved < settledBy
	if more && settled && asked.Options.Latent == options.Select {
		q, err := assess.ChooseRank(c.Layout, got.sites, true, c.Factors, c.draws())
		if err != nil {
			return nil, nil, err
		}
		if q < c.Factors {
			o.Latent, o.Sent, o.Steps = append(o.Latent, q), nil, nil
			return asked.fitted(s)
		}
	}
	ask := func(model *ppca.Params, about *between.Offsets) ([]method.Task, method.Info, error) {
		tasks, err := c.Ask(s, options.TaskFit, func(site string) (any, error) {
			return FitTask{Scale: *s.Scale, Model: model, Offset: about.At(site)}, nil
		})
		return tasks, info, err
	}
	if more && !settled {
		o.Sent, o.Said = found.next, maps.Clone(s.Inbox)
		return ask(found.next, found.about)
	}
	o.Said, o.Steps, o.Sent = nil, nil, nil
	err = c.judge(s, &found.Params, got, found.means)
	if err == nil {
		err = c.Finish(s, s.Model)
	}
	if err != nil {
		return nil, nil, err
	}
	if o.Last = got.again() && !c.Options.Asks(c.Plan, options.TaskAssess); o.Last {
		o.Sent = s.Model
		return ask(s.Model, nil)
	}
	if c.Totals && !got.again() {
		if err := c.endTotals(s, got); err != nil || s.Phase == method.Done {
			return nil, info, err
		}
	}
	tasks, err := c.Assess(s)
	return tasks, info, err
}

// exchange is what the sums of all sites lead to: the model that is fitted to them, and the next to send.
type exchange struct {
	*ppca.Fitted
	means *between.Offsets // how the sites' means differ, if that was found
	apart *between.Offsets // the same where they do; else they are samples of one population
	next  *ppca.Params
	about *between.Offsets // means of sites beside next
	// moved is by how many nats per subject the model is from the last that was sent, about; 0 without one
	moved float64
}

// exchange fits one model, from a start or several, to what sites said after they were sent another.
func (c Coordinator) exchange(o *fitState, got *answered, sent, start *ppca.Params) (x exchange, err error) {
	differ := false
	if x.Fitted, x.means, differ, err = fitSums(c.Setup, got.sites, start); err != nil {
		return x, err
	}
	if differ {
		x.apart, x.means.Names = x.means, got.names
	}
	if x.next, x.about = &x.Params, x.apart; sent != nil {
		o.LogLik = append(o.LogLik, got.logLik/got.subjects)
		x.moved = newStep(c.Layout, sent, &x.Params, sent).moved()
		x.next, x.about = c.next(o, exchanged{sent, &x.Params, x.apart})
	}
	return x, nil
}

// judge takes from the sums of all sites what they tell beside the final model: how well it predicts subjects who
// took no part, how sites differ, and what features and sites are odd.
func (c Coordinator) judge(s *State, p *ppca.Params, got *answered, means *between.Offsets) (err error) {
	last, sites := s.Exact.Fit, got.known
	if means == nil { // how they differ all the same
		o := ppca.FitOptions{LeastNoise: ppca.LeastNoise, MaxIter: cyclesOfSpread}
		if _, means, err = between.Fit(c.Layout, sites, c.Factors, p, o); err != nil {
			return fmt.Errorf("finding how the means of sites differ: %w", err)
		}
	}
	if s.SiteMeans != nil {
		if err := means.Together(c.Layout, sites, p); err != nil {
			return fmt.Errorf("finding how the means of sites shift together: %w", err)
		}
	}
	if s.HeldOut, err = assess.LeaveOut(c.Layout, p, s.SiteMeans != nil, sites, c.draws()); err != nil {
		return err
	}
	last.Spread = spreadOf(c.Layout, p, sites, means.Variance)
	last.Compositions = compositions(c.Layout, &s.Scale.Scale, sites)
	last.Discords = discords(c.Layout, p, got.names, sites)
	return nil
}

// next is the model to send after one was sent and another found: an extrapolation from the last ones,
// or, for the last exchange, the one found. Where the likelihood has fallen, the extrapolation led astray, and the one
// found before is sent in its place: it is no less likely than what was sent before.
func (c Coordinator) next(o *fitState, last exchanged) (*ppca.Params, *between.Offsets) {
	o.Reach = cmp.Or(o.Reach, furthest)
	if n := len(o.LogLik) - 1; n > 0 && o.LogLik[n] < o.LogLik[n-1] {
		before := o.Steps
		o.Reach = max(o.Reach/astray, 1)
		if o.Steps = nil; len(before) > 1 && n+1 < c.Options.Rounds {
			last = before[len(before)-1]
			return last.Found, last.Apart
		}
	} else if len(o.Steps) > 1 {
		o.Reach = min(o.Reach*astray, furthest)
	}
	o.Steps = append(o.Steps, last)
	o.Steps = o.Steps[max(0, len(o.Steps)-remembered):]
	if len(o.LogLik) == c.Options.Rounds-1 || len(o.Steps) == 1 {
		return last.Found, last.Apart
	}
	list := make([]step, 0, remembered)
	for _, x := range o.Steps {
		list = append(list, newStep(c.Layout, x.Sent, x.Found, last.Sent))
	}
	next := unflatten(c.Layout, extrapolate(list, o.Reach), last.Sent)
	if next.Check(c.Layout) != nil {
		return last.Found, last.Apart
	}
	return next, last.Apart
}

// endTotals says how well the model describes all subjects by their total. Where no site is asked for that, the study
// ends. What was filled counts as its expectation.
func (c Coordinator) endTotals(s *State, got *answered) error {
	x, logLik, subjects, err := ppca.NewExplained(c.Layout, s.Model, got.sites[0])
	if err != nil {
		return err
	}
	if got.again() {
		logLik = got.logLik // of cells that subjects have
	}
	if s.LogLik = logLik / subjects; c.Options.Asks(c.Plan, options.TaskAssess) {
		return nil
	}
	a := &fitted.Assessment{Explained: *x, LogLik: logLik}
	views := make([]int, c.Layout.Views())
	for k := range views {
		views[k] = k
	}
	a.Patterns = []ppca.Pattern{{Views: views, Subjects: int(subjects), Share: 1}}
	s.Phase, s.OfTotals = method.Done, a
	return nil
}
