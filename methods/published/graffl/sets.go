package graffl

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/privacy"
)

// setsRequest is what each task releases. There are as many as proposals at most, as a batch has one at least.
func (s setup) setsRequest() privacy.Request {
	return privacy.Request{Protection: privacy.Unprotected, Contents: []privacy.Content{
		{What: "mean distance, or kernel value, between all rows and each of some simulated sets", Values: setBatch},
		{What: fitted.RowsReleased, Values: 1}}}
}

// setsCoordinator is sequential Monte Carlo on set discrepancies.
type setsCoordinator struct{ setup }

// setsState is what it carries: threshold and generation are the sampler's.
type setsState struct {
	SMC     SMC                             `cbor:"smc"`
	Answers map[string]*discrepanciesAnswer `cbor:"answers"` // to the batch that is out
	Rows    map[string]int                  `cbor:"rows"`    // of each site, from its first answer
	Asked   bool                            `cbor:"asked"`
	Trace   []point                         `cbor:"trace"`
}

// point is a generation that has ended.
type point struct {
	Used      int     `cbor:"used"`
	Threshold float64 `cbor:"threshold"` // of the next generation
}

// MarshalBinary implements [method.State].
func (s *setsState) MarshalBinary() ([]byte, error) { return method.SealState(s) }

// Init implements [method.Coordinator].
func (c *setsCoordinator) Init() (method.State, error) {
	smc, err := newSMC(c.Prior, *c.own.Set, c.seed())
	if err != nil {
		return nil, err
	}
	return &setsState{SMC: *smc, Answers: map[string]*discrepanciesAnswer{}, Rows: map[string]int{}}, nil
}

// Restore implements [method.Coordinator].
func (c *setsCoordinator) Restore(data []byte) (method.State, error) {
	s := &setsState{Answers: map[string]*discrepanciesAnswer{}, Rows: map[string]int{}}
	return s, method.OpenState(data, s)
}

// Next implements [method.Coordinator].
func (c *setsCoordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*setsState)
	if s.Asked {
		if err := c.fold(s); err != nil {
			return method.Step{}, err
		}
		s.Asked = false
		clear(s.Answers)
	}
	step := method.Step{State: s, Progress: s.SMC.Used, Of: c.own.Set.Proposals}
	if s.SMC.Generation > 0 {
		step.Info = method.Info{"generation": float64(s.SMC.Generation)}
		if !math.IsInf(s.SMC.Threshold, 0) { // as where no set is any distance from the rows
			step.Info["threshold"] = s.SMC.Threshold
		}
	}
	if s.SMC.Stopped != running {
		step.Done = true
		return step, nil
	}
	s.Asked = true
	var err error
	step.Tasks, err = ask(c.Plan.Sites, s.SMC.Used, s.SMC.Propose(setBatch))
	return step, err
}

// fold gives the sampler what the sites have answered.
func (c *setsCoordinator) fold(s *setsState) error {
	var rows []int
	total := 0
	for _, site := range c.Plan.Sites {
		a := s.Answers[site]
		if a == nil {
			return fmt.Errorf("site %s has not answered", site)
		}
		rows = append(rows, a.Rows)
		total += a.Rows
	}
	if total == 0 {
		return fitted.ErrNoRows
	}
	d := c.own.discrepancy()
	proposals := s.SMC.Propose(setBatch)
	distances := make([]float64, len(proposals))
	across := make([]float64, len(rows))
	each(c.setup, s.SMC.Used, proposals, func(i int, set []float64) {
		if set == nil {
			distances[i] = math.Inf(1)
			return
		}
		for j, site := range c.Plan.Sites {
			across[j] = s.Answers[site].Across[i]
		}
		distances[i] = d.Over(d.Cross(set, set, len(c.Names)), across, rows)
	})
	generation := s.SMC.Generation
	if err := s.SMC.Fold(distances); err != nil {
		return err
	}
	if s.SMC.Generation > generation {
		s.Trace = append(s.Trace, point{s.SMC.Used, s.SMC.Threshold})
	}
	return nil
}

// Fold implements [method.Coordinator].
func (c *setsCoordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*setsState)
	if err := method.Member(c.Plan.Sites, in.Site); err != nil {
		return nil, err
	}
	if in.Kind != taskDiscrepancies || !s.Asked {
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	}
	return s, method.Take(s.Answers, in, func(a *discrepanciesAnswer) error {
		if err := a.check(len(s.SMC.Propose(setBatch))); err != nil {
			return err
		}
		// Sites that had rows at first would else leave none to go on with.
		if rows, known := s.Rows[in.Site]; known && a.Rows != rows {
			return fmt.Errorf("means over %d rows from a site that had %d before", a.Rows, rows)
		}
		s.Rows[in.Site] = a.Rows
		return nil
	})
}

// Leave implements [method.Coordinator]: distances from some sites' rows cannot be
// held against a threshold of distances from all.
func (c *setsCoordinator) Leave(_ method.State, site string) (method.State, error) {
	return nil, fmt.Errorf("site %q will not answer, and sets needs every site to the end", site)
}

// Share gives every site the posterior mean of the mixture.
func (c *setsCoordinator) Share(ms method.State, _ string) ([]byte, error) {
	p, err := c.Draws(ms)
	if err != nil {
		return nil, err
	}
	return fitted.Share(p.Mean())
}

// Draws are the sample of a study that is done.
func (c *setsCoordinator) Draws(ms method.State) (*gmm.Posterior, error) {
	s := ms.(*setsState)
	if s.SMC.Stopped == running {
		return nil, fmt.Errorf("the study is not done: it has used %d proposals", s.SMC.Used)
	}
	p := s.SMC.Sample()
	return &p, nil
}

// setsSite is the site half of sets.
type setsSite struct{ site }

// Run implements [method.Site].
func (h *setsSite) Run(ctx context.Context, t method.Task, s *privacy.Session) (method.Answer, error) {
	return answered(t, taskDiscrepancies, func(task *discrepanciesTask) (any, error) {
		return h.discrepancies(ctx, task, s)
	})
}

// discrepancies answers a batch.
func (h *setsSite) discrepancies(ctx context.Context, task *discrepanciesTask, session *privacy.Session) (any, error) {
	proposals, err := task.open(h.setup)
	if err != nil {
		return nil, err
	}
	rows, err := h.all(ctx, session)
	if err != nil {
		return nil, err
	}
	d := len(h.Names)
	a := discrepanciesAnswer{Across: make(wire.Vector, len(proposals)), Rows: len(rows) / d}
	if a.Rows == 0 {
		return a, nil
	}
	each(h.setup, task.First, proposals, func(i int, set []float64) {
		if set == nil {
			return
		}
		// Infinity is sent as the largest float: what travels is finite.
		a.Across[i] = min(h.own.discrepancy().Cross(set, rows, d), math.MaxFloat64)
	})
	return a, ctx.Err()
}

// Report implements [method.Site]: where the site's own rows lie in the shared mixture.
func (h *setsSite) Report(ctx context.Context, shared []byte, data dataset.Source) (*method.Result, error) {
	return fitted.Own(ctx, h.Setup, shared, data)
}

// Result implements [method.Coordinator].
func (c *setsCoordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*setsState)
	p, err := c.Draws(s)
	if err != nil {
		return nil, err
	}
	v := fitted.NewView(c.Setup, p)
	v.Published, v.Options = c.says(), c.own
	files, err := v.Files()
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{"proposals": float64(s.SMC.Used), "generations": float64(s.SMC.Generation),
		"draws": float64(len(p.Draws))}
	v.Components(metrics)
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(c.Prior.Components())},
		{Name: "proposals", Value: figure.Count.Text(float64(s.SMC.Used))},
		{Name: "generations", Value: strconv.Itoa(s.SMC.Generation)}}
	return &method.Result{Files: files, Metrics: metrics, Found: v.Found(),
			Sure: "That is not known: the intervals of such a sample are not calibrated.", Headline: facts,
			Sections: []figure.Section{setWarning(), overview(v, s.Rows), v.ComponentsSection(),
				c.generationsSection(s)}},
		nil
}

// setWarning says first what a reader of all that follows has to know.
func setWarning() figure.Section {
	return figure.Section{ID: "set", Title: "What this sample is, and what it gives away",
		Items: []figure.Item{{Note: &figure.Note{Warning: true,
			Title: "Intervals are not calibrated, and nothing is private",
			Text: "This study compared simulated sets with all rows, to be compared with other ways. The sample is " +
				"the posterior only in the limit of a threshold that cannot be lowered. At this one nothing is " +
				"calibrated: intervals of means and weights are mostly too wide, and after very many proposals too " +
				"narrow, as simulated sets have less chance in them than rows do; covariances still lean towards the " +
				"prior, mostly too large, and their intervals often miss the truth.\n\nEach answer of a site is an " +
				"exact mean over its rows, for a set that is known: enough of them tell of single rows, and as many " +
				"from a study before or after one person joins give that person's row."}}}}
}

// generationsSection shows how close the sample came.
func (c *setsCoordinator) generationsSection(s *setsState) figure.Section {
	line := figure.Line{Name: "threshold"}
	for _, p := range s.Trace {
		line.X, line.Y = append(line.X, float64(p.Used)), append(line.Y, p.Threshold)
	}
	ended := fmt.Sprintf("It ended when all %s proposals were used", figure.Count.Text(float64(s.SMC.Used)))
	if s.SMC.Stopped == fewAccepted {
		ended = fmt.Sprintf("It ended after %s proposals, when hardly one more was accepted",
			figure.Count.Text(float64(s.SMC.Used)))
	}
	return figure.Section{ID: "generations", Title: "How close the sample came",
		Lead: "Of each proposal a set of rows was simulated, and every site answered how far it lies from its own. " +
			"Generation by generation the threshold on that distance was lowered. " + ended + ".",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "threshold", Title: "The threshold by proposals",
				Chart: figure.Lines{X: figure.Axis{Label: "proposals", Log: true},
					Y: figure.Axis{Label: "discrepancy, less a constant"}, Series: []figure.Line{line}},
				Caption: "Each step to the right on this axis is so many times more proposals. Where the curve still " +
					"falls, more of them would bring the sample nearer.",
				Alt: "The threshold against the number of proposals."}},
		}}
}

// taskDiscrepancies asks how far some simulated sets lie from a site's rows.
const taskDiscrepancies = "discrepancies"

// discrepanciesTask holds proposals, of which the site simulates sets itself: their random numbers are the plan's.
type discrepanciesTask struct {
	First     int         `cbor:"first"`     // number of the first proposal, from 0
	Proposals wire.Vector `cbor:"proposals"` // in [gmm.Coordinates], one after the other
}

// discrepanciesAnswer holds the site's part: see discrepancy.Cross.
type discrepanciesAnswer struct {
	Across wire.Vector `cbor:"across"` // of each proposal
	Rows   int         `cbor:"rows"`
}

func (a *discrepanciesAnswer) check(proposals int) error {
	if len(a.Across) != proposals {
		return fmt.Errorf("discrepancies of %d proposals where %d were sent", len(a.Across), proposals)
	}
	if a.Rows < 0 || a.Rows > fitted.MaxRows {
		return fmt.Errorf("%d rows: want 0 to %d", a.Rows, fitted.MaxRows)
	}
	for i, v := range a.Across {
		if !(v >= 0) {
			return fmt.Errorf("a mean of %v for proposal %d: distances and kernels are not negative", v, i+1)
		}
	}
	return nil
}

// open checks a task against the plan.
func (t *discrepanciesTask) open(s setup) (proposals [][]float64, err error) {
	n := gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}.Len()
	if len(t.Proposals) == 0 || len(t.Proposals)%n != 0 || len(t.Proposals) > n*setBatch {
		return nil, fmt.Errorf("%d numbers as proposals: want %d for each of 1 to %d", len(t.Proposals), n, setBatch)
	}
	if t.First < 0 || t.First > s.own.Set.Proposals-len(t.Proposals)/n {
		return nil, fmt.Errorf("proposals from number %d of a plan with %d", t.First, s.own.Set.Proposals)
	}
	proposals = slices.Collect(slices.Chunk([]float64(t.Proposals), n))
	for i, u := range proposals {
		if err := checkProposal(s.Setup, u); err != nil {
			return nil, fmt.Errorf("proposal %d: %w", t.First+i+1, err)
		}
	}
	return proposals, nil
}

// ask asks sites how far their rows lie from the sets of some proposals, the first of which has a number.
func ask(sites []string, first int, proposals [][]float64) ([]method.Task, error) {
	task := discrepanciesTask{First: first}
	for _, u := range proposals {
		task.Proposals = append(task.Proposals, u...)
	}
	return method.Ask(taskDiscrepancies, sites, func(string) (any, error) { return task, nil })
}

// steepest bounds logarithms: of shares of weights, and of standard deviations. Those of
// numbers that a float64 holds are below 800.
const steepest = 1e4

// farthest is how many widths of its public range a mean may lie outside, and a
// standard deviation measure, in what a site takes from whoever asks: the prior has less than 1e-100 beyond.
const farthest = 1e50

// checkProposal checks a parameter in [gmm.Coordinates].
func checkProposal(s *fitted.Setup, u []float64) error {
	c := gmm.Coordinates{K: s.Prior.Components(), Dim: s.Prior.Dim()}
	wrong := func(what string, x float64) error {
		return fmt.Errorf("%s of %v: no study proposes that", what, x)
	}
	narrow := func(i int, x float64) bool { return math.Abs(x) <= farthest*(s.Hi[i]-s.Lo[i]) }
	for _, x := range u[:c.K-1] {
		if !(math.Abs(x) <= steepest) {
			return wrong("a share of weights with the logarithm", x)
		}
	}
	for i, x := range c.Means(u) {
		if !narrow(i%c.Dim, x-s.Lo[i%c.Dim]) {
			return wrong("a mean", x)
		}
	}
	factors := u[c.K-1+c.K*c.Dim:]
	for triangle := range slices.Chunk(factors, c.Triangle()) {
		at := 0
		for i := range c.Dim {
			for _, x := range triangle[at : at+i] {
				if !narrow(i, x) {
					return wrong("an entry of a covariance's factor", x)
				}
			}
			if at += i; !(math.Abs(triangle[at]) <= steepest) {
				return wrong("a standard deviation with the logarithm", triangle[at])
			}
			at++
		}
	}
	return nil
}

// seed is that of proposals and sets.
func (s setup) seed() uint64 { return fitted.SeedOf(s.Plan, "sets") }

// each calls f with the set that both halves simulate from each proposal, the first of which has a number; nil where a
// proposal cannot be simulated, for which covariances may be too near to singular. The set is overwritten by the next.
func each(s setup, first int, proposals [][]float64, f func(i int, set []float64)) {
	smc := &SMC{Prior: s.Prior, Choices: *s.own.Set, Seed: s.seed(), Used: first}
	rows := make([]float64, s.own.Set.Rows*len(s.Names))
	for i, u := range proposals {
		if err := smc.Set(u, i, rows); err != nil || gmm.NotFinite(rows) >= 0 {
			f(i, nil)
			continue
		}
		f(i, rows)
	}
}
