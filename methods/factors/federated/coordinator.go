// Package federated is the default way to fit: in one shot the sites fit models of their own,
// of which the coordinator makes one; rounds after it, if the plan has any, estimate how
// sites differ. Use [Coordinator] and [Site]. A site never sends a value that was drawn
// towards the prior, and a variance between sites may be zero.
package federated

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/factors/between"
	"parley/methods/factors/fitted"
	"parley/methods/factors/halves"
	"parley/methods/factors/options"
	"parley/methods/factors/ppca"
	"parley/methods/factors/report"
)

// Coordinator is the coordinator's half of a federated study.
func Coordinator(set options.Setup) method.Coordinator {
	return halves.NewCoordinator(set, way{halves.Common{Setup: set}})
}

// way is one shot, then hierarchical rounds.
type way struct{ halves.Common }

// record is what the rounds carry.
type record struct {
	OneShot *oneShot `cbor:"one_shot"`
	// Said is what the sites answered in the one shot, while they are asked again: it
	// stands for sites that leave meanwhile.
	Said map[string][]byte `cbor:"said,omitempty"`
	// Starts is where the next round starts at each site that answered the last.
	Starts map[string]*siteStart `cbor:"starts"`
	// Diverged says that the rounds were stopped because they ran away from the data.
	Diverged bool `cbor:"diverged,omitempty"`
	// Undetermined are the sites whose subjects do not determine as many factors, for whom
	// the rounds were stopped.
	Undetermined []string `cbor:"undetermined,omitempty"`
}

// oneShot is the one shot's model, and how its fit went.
type oneShot struct {
	Params    options.Params `cbor:"params"`
	Trace     wire.Vector    `cbor:"trace"` // log-likelihood per subject of what the sites said, by iteration
	Converged bool           `cbor:"converged"`
	Rough     []string       `cbor:"rough,omitempty"` // sites of which a set is described by too few factors
	// Discords are features whose loadings disagree between sites.
	Discords []loadingHeterogeneity `cbor:"discords,omitempty"`
	// Unshared are directions in which a site's subjects vary more than others.
	Unshared []siteEigenvector `cbor:"unshared,omitempty"`
}

// stopped says whether nothing of the rounds is kept.
func (r *record) stopped() bool { return r.Diverged || len(r.Undetermined) > 0 }

func (way) Record() any { return new(record) }

// Check implements [halves.Way].
func (c way) Check(s *halves.State) error {
	o := own(s)
	if s.Phase == options.TaskRefill && s.Model == nil {
		return fmt.Errorf("it has no model by which cells are filled")
	}
	if !slices.Contains([]string{options.TaskRefine, options.TaskAssess, method.Done}, s.Phase) {
		return nil
	}
	if o.OneShot == nil || s.Model == nil || len(s.Trace) == 0 {
		return fmt.Errorf("it has no model of the one shot")
	}
	if p, err := o.OneShot.Params.Unpack(c.Layout); err != nil {
		return err
	} else if p.Rank != c.Options.Latent {
		return fmt.Errorf("a model of %d factors in the one shot, where there are %d", p.Rank, c.Options.Latent)
	}
	for i, p := range s.Trace[1:] {
		if len(p.SDW) == 0 {
			return fmt.Errorf("round %d has no spread between sites", i+1)
		}
	}
	for _, x := range o.OneShot.Discords {
		if err := c.HasFeatures(x.Feature); err != nil {
			return err
		}
	}
	for _, x := range o.OneShot.Unshared {
		if err := c.HasFeatures(x.Features...); err != nil || len(x.Features) == 0 {
			return fmt.Errorf("a direction of features %v: %w", x.Features, err)
		}
	}
	return nil
}

func own(s *halves.State) *record { return s.Own.(*record) }

func (c way) Steps() int {
	n := c.Options.Rounds + 3 // the one shot, where cells are missing another, and the assessment
	if c.Options.Pools() {
		n++
	}
	if c.Options.Asks(c.Plan, options.TaskAdjust) {
		n++
	}
	return n
}

func (c way) Begin(s *halves.State) ([]method.Task, method.Info, error) {
	tasks, err := c.Ask(s, options.TaskFit, func(string) (any, error) { return FitTask{Scale: *s.Scale}, nil })
	return tasks, nil, err
}

func (c way) Advance(s *halves.State) ([]method.Task, method.Info, error) {
	switch s.Phase {
	case options.TaskFit, options.TaskRefill:
		return c.oneShot(s)
	case options.TaskRefine:
		return c.refine(s)
	}
	return nil, nil, fmt.Errorf("unknown phase %q", s.Phase)
}

func (c way) Receive(a method.Contribution) (halves.Answer, error) {
	switch a.Kind {
	case options.TaskFit, options.TaskRefill:
		return halves.Received(a, func(x *FitAnswer) error { return x.check(c.Setup) })
	case options.TaskRefine:
		return halves.Received(a, func(x *RefineAnswer) error { return x.check(c.Setup) })
	}
	return halves.Answer{}, fmt.Errorf("no such task")
}

func (c way) EstimatesSpread() bool { return c.Options.Rounds > 0 }

func (c way) Describe(s *halves.State, m *fitted.Model) error {
	if own(s).stopped() {
		m.ForgetSpread()
	}
	if s.SiteMeans != nil {
		m.PutSiteMeans(c.Layout, s.SiteMeans)
	}
	if rough := own(s).OneShot.Rough; len(rough) > 0 {
		m.Verdicts = append(m.Verdicts, fitted.Verdict{Says: "The fit may be far behind one to all rows in one place: factors are not enough to describe the subjects of " + strings.Join(rough, ", "),
			Advice: "Features go together there in many ways that are about as strong, local_rank allows for some of them, and exact sums of so many features would be too large to send. Other factors may describe the subjects better. Raise local_rank, or let the plan have fewer features."})
	}
	return nil
}

// Conclude adds what an assessment does not show of features.
func (c way) Conclude(s *halves.State, m *fitted.Model) {
	if v := discordVerdict(c.Layout, m, own(s).OneShot.Discords); v != nil {
		m.Verdicts = append(m.Verdicts, *v)
	}
	if v := unsharedVerdict(c.Layout, s, m, own(s).OneShot.Unshared); v != nil {
		m.Verdicts = append(m.Verdicts, *v)
	}
}

func (c way) Result(s *halves.State, m *fitted.Model, files []method.File) (*method.Result, error) {
	if !c.EstimatesSpread() {
		return c.AssessedResult(s, m, files, nil)
	}
	fit := own(s).OneShot
	settled := report.Convergence(c.Setup, &report.Fit{Trace: fit.Trace, Converged: fit.Converged}, s.Trace)
	found, err := c.oneShotParams(s)
	if err != nil {
		return nil, err
	}
	if note := spreadNote(s.Trace, sdOf(c.Layout, &found), *c.Options.Tolerance, own(s).Undetermined, own(s).Diverged); note != nil {
		settled.Items = append(settled.Items, figure.Item{Note: note})
	}
	return c.AssessedResult(s, m, files, &settled)
}

// oneShot fits one model to what the sites said of themselves, taken as data: the answer
// after a single round. Where sites had to fill single missing cells to say it, they are
// asked once more, and fill them by this model. What follows estimates how sites differ.
func (c way) oneShot(s *halves.State) ([]method.Task, method.Info, error) {
	var names []string
	var sites [][]ppca.Block
	var rough []string
	filled := 0.0
	take := func(site string, a *FitAnswer) error {
		own, err := a.blocks(c.Setup)
		if len(own) > 0 { // else all its sets of views are below the plan's minimum
			names, sites = append(names, site), append(sites, own)
		}
		filled += a.Filled
		if slices.ContainsFunc(own, func(b ppca.Block) bool { return b.Rough }) {
			rough = append(rough, site)
		}
		return err
	}
	if _, _, err := halves.Answers(c.Common, s, take); err != nil {
		return nil, nil, err
	}
	if err := halves.Left(c.Common, s, own(s).Said, take); err != nil {
		return nil, nil, err
	}
	if len(sites) == 0 {
		return nil, nil, fmt.Errorf("no site has %d subjects with the same views, of whom the plan's minimum lets it speak\n  hint: a smaller minimum, or larger sites", c.Options.Minimum)
	}
	fit, means, err := Fit(c.Setup, sites, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("fitting one model to all sites: %w", err)
	}
	if s.SiteMeans = nil; means != nil {
		s.SiteMeans = options.PackSiteMeans(names, means)
	}
	if err := c.Complete(&fit.Params); err != nil {
		return nil, nil, err
	}
	model, err := ppca.Weak(c.Layout, &fit.Params)
	if err != nil {
		return nil, nil, err
	}
	s.Model = options.PackPrior(c.Layout, model)
	if s.Phase == options.TaskFit && filled > 0 {
		own(s).Said = maps.Clone(s.Inbox)
		tasks, err := c.Ask(s, options.TaskRefill, func(site string) (any, error) {
			return RefillTask{Scale: *s.Scale, Model: s.Model.Params, Offset: s.SiteMeans.At(site)}, nil
		})
		return tasks, method.Info{"single cells filled": filled}, err
	}
	own(s).Said = nil
	own(s).OneShot = &oneShot{Params: s.Model.Params, Trace: fit.Trace, Converged: fit.Converged, Rough: rough, Discords: discords(c.Layout, &fit.Params, names, sites), Unshared: unsharedDirections(c.Layout, &fit.Params, names, sites)}
	s.Trace = append(s.Trace, options.Point{})
	info := method.Info{"iterations": float64(fit.Iterations), "log-likelihood per subject of what the sites said": fit.LogLik / fit.Subjects}
	c.meansInfo(s, info)
	if c.Options.Rounds == 0 {
		tasks, err := c.Assess(s)
		return tasks, info, err
	}
	tasks, err := c.askRefine(s)
	return tasks, info, err
}

// meansInfo puts in how far the sites' means differ, of which the rounds see what the
// offsets leave.
func (c way) meansInfo(s *halves.State, info method.Info) {
	if s.SiteMeans != nil {
		info["means between sites, largest sd"] = slices.Max(s.SiteMeans.SD(c.Layout))
	}
}

func (c way) askRefine(s *halves.State) ([]method.Task, error) {
	return c.Ask(s, options.TaskRefine, func(site string) (any, error) {
		return RefineTask{Scale: *s.Scale, Prior: *s.Model, Start: own(s).Starts[site], Offset: s.SiteMeans.At(site)}, nil
	})
}

// refine folds a hierarchical round.
func (c way) refine(s *halves.State) ([]method.Task, method.Info, error) {
	var messages []between.Message
	logLik, subjects := 0.0, 0.0
	sites, _, err := halves.Answers(c.Common, s, func(site string, a *RefineAnswer) error {
		if a.Undetermined {
			own(s).Undetermined = append(own(s).Undetermined, site)
			return nil
		}
		m, err := a.message(c.Layout)
		if err != nil {
			return err
		}
		messages = append(messages, *m)
		logLik, subjects = logLik+a.LogLik, subjects+a.Subjects
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	found, err := c.oneShotParams(s)
	if err != nil {
		return nil, nil, err
	}
	if len(own(s).Undetermined) > 0 {
		model, err := ppca.Weak(c.Layout, &found)
		if err != nil {
			return nil, nil, err
		}
		tasks, err := c.assessOneShot(s, model)
		return tasks, nil, err
	}
	model, states, err := between.Pool(c.Layout, messages)
	if err != nil {
		return nil, nil, err
	}
	if err := c.Complete(&model.Params); err != nil {
		return nil, nil, err
	}
	sound := c.sound(&model.Params, &found)
	if !sound {
		if model, err = ppca.Weak(c.Layout, &found); err != nil {
			return nil, nil, err
		}
	}
	s.Model = options.PackPrior(c.Layout, model)
	starts := map[string]*siteStart{}
	for i, name := range sites {
		if sound {
			starts[name] = &siteStart{options.PackParams(c.Layout, &states[i].Params), states[i].Nu, states[i].Xi}
		}
	}
	own(s).Starts = starts
	scored := logLik / subjects // of the model that the round began with
	s.Trace.Score(scored)
	info := s.Trace.Record(s.Round, model)
	info["log-likelihood per subject"] = scored
	c.meansInfo(s, info)
	own(s).Diverged = diverged(s.Trace)
	if s.Round < c.Options.Rounds && !settled(s.Trace, sdOf(c.Layout, &found), *c.Options.Tolerance) && !own(s).Diverged {
		tasks, err := c.askRefine(s)
		return tasks, info, err
	}
	model.Params = found
	tasks, err := c.assessOneShot(s, model)
	return tasks, info, err
}

// assessOneShot ends the rounds, which were for the spread between sites. The pooled
// population is described by the one shot, its maximum likelihood; W̃ and μ̃ of the rounds
// are those of a typical site, which on real data fit pooled rows less well.
func (c way) assessOneShot(s *halves.State, model *ppca.Prior) ([]method.Task, error) {
	s.Model = options.PackPrior(c.Layout, model)
	own(s).Starts = nil // they are on other axes than the final model, and there is no further round
	return c.Assess(s)
}

// mostApart is by how many standard deviations of the whole population a typical
// site may differ from it: what differs by more is no estimate, and sites could
// not compute with it. Sites that are all honest are part of the population, and
// so is what they differ by.
const mostApart = 1e6

// sound holds the model of a typical site against that of the population.
func (c way) sound(p, population *ppca.Params) bool {
	group, q := c.Layout.GroupOf(), population.Rank
	strength := 0.0
	for _, j := range population.Features {
		variance := population.Noise[group[j]]
		for _, w := range population.W[j*q:][:q] {
			variance += w * w
		}
		limit := mostApart * math.Sqrt(variance)
		if ppca.Within("loadings", p.W[j*q:][:q], limit) != nil || !(math.Abs(p.Mu[j]-population.Mu[j]) <= limit) {
			return false
		}
		for _, w := range p.W[j*q:][:q] {
			strength += w * w / p.Noise[group[j]]
		}
	}
	return strength <= ppca.Clearest
}

func (c way) oneShotParams(s *halves.State) (ppca.Params, error) {
	p, err := own(s).OneShot.Params.Unpack(c.Layout)
	if err != nil {
		return ppca.Params{}, fmt.Errorf("restoring the one shot: %w", err)
	}
	return *p, nil
}
