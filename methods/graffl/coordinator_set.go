package graffl

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/figure"
	"parley/internal/wire"
	"parley/method"
	"parley/method/rounds"
	"parley/methods/graffl/abc"
	"parley/methods/graffl/mixture"
)

// setCoordinator is sequential Monte Carlo on set discrepancies.
type setCoordinator struct{ *setup }

// setState is what it carries: threshold and generation are the sampler's.
type setState struct {
	SMC     abc.SMC                         `cbor:"smc"`
	Answers map[string]*discrepanciesAnswer `cbor:"answers"` // to the batch that is out
	Rows    map[string]int                  `cbor:"rows"`    // of each site, from its first answer
	Asked   bool                            `cbor:"asked"`
	Trace   []setPoint                      `cbor:"trace"`
}

// setPoint is a generation that has ended.
type setPoint struct {
	Used      int     `cbor:"used"`
	Threshold float64 `cbor:"threshold"` // of the next generation
}

// MarshalBinary implements [method.State].
func (s *setState) MarshalBinary() ([]byte, error) { return wire.Marshal(s) }

// Init implements [method.Coordinator].
func (c *setCoordinator) Init() (method.State, error) {
	smc, err := abc.NewSMC(c.prior, c.opts.choices(c.seed("sets")))
	if err != nil {
		return nil, err
	}
	return &setState{SMC: *smc, Answers: map[string]*discrepanciesAnswer{}, Rows: map[string]int{}}, nil
}

// Restore implements [method.Coordinator].
func (c *setCoordinator) Restore(data []byte) (method.State, error) {
	s := new(setState)
	if err := wire.Unmarshal(data, s); err != nil {
		return nil, err
	}
	if s.SMC.Choices != c.opts.choices(c.seed("sets")) || !s.SMC.Prior.Equal(c.prior) {
		return nil, fmt.Errorf("the state is of another plan's sampler")
	}
	if err := s.SMC.Check(); err != nil {
		return nil, fmt.Errorf("the state's sampler: %w", err)
	}
	proposals := len(s.SMC.Propose(setBatch))
	for name, a := range s.Answers {
		if !slices.Contains(c.plan.Sites, name) || a == nil {
			return nil, fmt.Errorf("the state has an answer of %q, which is no site of the plan", name)
		}
		if err := a.check(proposals); err != nil {
			return nil, fmt.Errorf("the state's answer of site %s: %w", name, err)
		}
	}
	for name, n := range s.Rows {
		if !slices.Contains(c.plan.Sites, name) || n < 0 || n > maxRows {
			return nil, fmt.Errorf("the state has %d rows of %q", n, name)
		}
	}
	if s.Answers == nil {
		s.Answers = map[string]*discrepanciesAnswer{}
	}
	if s.Rows == nil {
		s.Rows = map[string]int{}
	}
	return s, nil
}

// Next implements [method.Coordinator].
func (c *setCoordinator) Next(ms method.State) (method.Step, error) {
	s := ms.(*setState)
	if s.Asked {
		if err := c.fold(s); err != nil {
			return method.Step{}, err
		}
		s.Asked = false
		clear(s.Answers)
	}
	step := method.Step{State: s, Progress: s.SMC.Used, Of: c.opts.Set.Proposals}
	if s.SMC.Generation > 0 {
		step.Info = method.Info{"generation": float64(s.SMC.Generation)}
		if !math.IsInf(s.SMC.Threshold, 0) { // as where no set is any distance from the rows
			step.Info["threshold"] = s.SMC.Threshold
		}
	}
	if s.SMC.Stopped != abc.Running {
		step.Done = true
		return step, nil
	}
	s.Asked = true
	var err error
	step.Tasks, err = askSets(c.plan.Sites, s.SMC.Used, s.SMC.Propose(setBatch))
	return step, err
}

// fold gives the sampler what the sites have answered.
func (c *setCoordinator) fold(s *setState) error {
	var rows []int
	total := 0
	for _, site := range c.plan.Sites {
		a := s.Answers[site]
		if a == nil {
			return fmt.Errorf("site %s has not answered", site)
		}
		rows = append(rows, a.Rows)
		total += a.Rows
	}
	if total == 0 {
		return c.noRows()
	}
	d := c.opts.discrepancy()
	proposals := s.SMC.Propose(setBatch)
	distances := make([]float64, len(proposals))
	across := make([]float64, len(rows))
	eachSet(c.setup, s.SMC.Used, proposals, func(i int, set []float64) {
		if set == nil {
			distances[i] = math.Inf(1)
			return
		}
		for j, site := range c.plan.Sites {
			across[j] = s.Answers[site].Across[i]
		}
		distances[i] = d.Over(d.Cross(set, set, len(c.names)), across, rows)
	})
	generation := s.SMC.Generation
	if err := s.SMC.Fold(distances); err != nil {
		return err
	}
	if s.SMC.Generation > generation {
		s.Trace = append(s.Trace, setPoint{s.SMC.Used, s.SMC.Threshold})
	}
	return nil
}

func (a *discrepanciesAnswer) check(proposals int) error {
	if len(a.Across) != proposals {
		return fmt.Errorf("discrepancies of %d proposals where %d were sent", len(a.Across), proposals)
	}
	if a.Rows < 0 || a.Rows > maxRows {
		return fmt.Errorf("%d rows: want 0 to %d", a.Rows, maxRows)
	}
	for i, v := range a.Across {
		if !(v >= 0) {
			return fmt.Errorf("a mean of %v for proposal %d: distances and kernels are not negative", v, i+1)
		}
	}
	return nil
}

// Fold implements [method.Coordinator].
func (c *setCoordinator) Fold(ms method.State, in method.Contribution) (method.State, error) {
	s := ms.(*setState)
	if err := rounds.Member(c.plan.Sites, in.Site); err != nil {
		return nil, err
	}
	switch {
	case in.Kind != taskDiscrepancies || !s.Asked:
		return nil, fmt.Errorf("an answer to %q, which was not asked for", in.Kind)
	case s.Answers[in.Site] != nil:
		return nil, fmt.Errorf("site %s has already answered", in.Site)
	}
	a := new(discrepanciesAnswer)
	if err := rounds.Decode(in, a); err != nil {
		return nil, err
	}
	if err := a.check(len(s.SMC.Propose(setBatch))); err != nil {
		return nil, err
	}
	// Sites that had rows at first would else leave none to go on with.
	if rows, known := s.Rows[in.Site]; known && a.Rows != rows {
		return nil, fmt.Errorf("means over %d rows from a site that had %d before", a.Rows, rows)
	}
	s.Answers[in.Site], s.Rows[in.Site] = a, a.Rows
	return s, nil
}

// Leave implements [method.Coordinator]: distances from some sites' rows cannot be
// held against a threshold of distances from all.
func (c *setCoordinator) Leave(_ method.State, site string) (method.State, error) {
	return nil, fmt.Errorf("site %q will not answer, and variant set needs every site to the end", site)
}

// Share gives every site the posterior mean of the mixture.
func (c *setCoordinator) Share(ms method.State, _ string) ([]byte, error) {
	s := ms.(*setState)
	if s.SMC.Stopped == abc.Running {
		return nil, fmt.Errorf("the study is not done: it has used %d proposals", s.SMC.Used)
	}
	p := s.SMC.Sample()
	m := p.Mean()
	return wire.Marshal(sharedModel{m.Weights, m.Means, m.Covs})
}

// Result implements [method.Coordinator].
func (c *setCoordinator) Result(ms method.State) (*method.Result, error) {
	s := ms.(*setState)
	if s.SMC.Stopped == abc.Running {
		return nil, fmt.Errorf("the study is not done: it has used %d proposals", s.SMC.Used)
	}
	p := s.SMC.Sample()
	v := newView(c.setup, &p)
	files, err := v.files()
	if err != nil {
		return nil, err
	}
	metrics := map[string]float64{"proposals": float64(s.SMC.Used), "generations": float64(s.SMC.Generation), "draws": float64(len(p.Draws))}
	v.components(metrics)
	facts := []figure.Fact{{Name: "components", Value: strconv.Itoa(c.opts.Components)}, {Name: "proposals", Value: figure.Count.Text(float64(s.SMC.Used))}, {Name: "generations", Value: strconv.Itoa(s.SMC.Generation)}}
	return &method.Result{Files: files, Metrics: metrics, Headline: append(facts, v.weights()...),
		Sections: []figure.Section{setWarning(), v.componentsSection(), v.posteriorSection(), c.generationsSection(s), setAttackSection(c.setup, s.SMC.Used)}}, nil
}

// setWarning says first what a reader of all that follows has to know.
func setWarning() figure.Section {
	return figure.Section{ID: "set", Title: "What this sample is, and what it gives away",
		Items: []figure.Item{{Note: &figure.Note{Warning: true, Title: "Intervals are not calibrated, and nothing is private",
			Text: "This study compared simulated sets with all rows, to be compared with other ways. The sample is the posterior only in the limit of a threshold that cannot be lowered. At this one nothing is calibrated: intervals of means and weights are mostly too wide, and after very many proposals too narrow, as simulated sets have less chance in them than rows do; covariances still lean towards the prior, mostly too large, and their intervals often miss the truth.\n\nEach answer of a site is an exact mean over its rows, for a set that is known: enough of them tell of single rows."}}}}
}

// generationsSection shows how close the sample came.
func (c *setCoordinator) generationsSection(s *setState) figure.Section {
	line := figure.Line{Name: "threshold"}
	for _, p := range s.Trace {
		line.X, line.Y = append(line.X, float64(p.Used)), append(line.Y, p.Threshold)
	}
	ended := fmt.Sprintf("It ended when all %s proposals were used", figure.Count.Text(float64(s.SMC.Used)))
	if s.SMC.Stopped == abc.FewAccepted {
		ended = fmt.Sprintf("It ended after %s proposals, when hardly one more was accepted", figure.Count.Text(float64(s.SMC.Used)))
	}
	return figure.Section{ID: "generations", Title: "How close the sample came",
		Lead: "Of each proposal a set of rows was simulated, and every site answered how far it lies from its own. Generation by generation the threshold on that distance was lowered. " + ended + ".",
		Items: []figure.Item{
			{Figure: &figure.Figure{ID: "threshold", Title: "The threshold by proposals", Chart: figure.Lines{X: figure.Axis{Label: "proposals", Log: true}, Y: figure.Axis{Label: "discrepancy, less a constant"}, Series: []figure.Line{line}},
				Caption: "Each step to the right on this axis is so many times more proposals. Where the curve still falls, more of them would bring the sample nearer.", Alt: "The threshold against the number of proposals."}},
		}}
}

// attackSection says what an attacker can do with so many means of each site.
func setAttackSection(s *setup, proposals int) figure.Section {
	var t attackTable
	d := len(s.names)
	given := figure.Count.Text(float64(proposals)) + " means of each site"
	t.add("differencing two studies", "a study of the same plan, before or after one person joins or leaves", fmt.Sprintf("%d means of each study", d+1), given,
		found(proposals, d+1, "that person's row, exactly, if the other study is ever run", "a surface that the person's row lies on, if the other study is ever run"))
	t.add("solving for all rows", "nothing but to read the answers: the sets follow from the plan's seed", fmt.Sprintf("%s for each row", plural(d, "mean")), given,
		fmt.Sprintf("there are as many equations as unknown numbers for a site of up to %s rows; the fewer it has, the easier they are solved", figure.Count.Text(float64(proposals/d))))
	finds := "nothing more: the energy distance has no width to choose"
	if s.opts.Set.Discrepancy == string(mixture.MMD) {
		finds = "single rows, if they lie further apart than a few bandwidths"
	}
	t.add("scanning with narrow kernels", "to choose the sets that sites compare their rows with, which a task of this variant does", "some dozens of means for each row", given, finds)
	return t.section(s)
}

func (c *setCoordinator) draws(ms method.State) (*mixture.Posterior, error) {
	s := ms.(*setState)
	if s.SMC.Stopped == abc.Running {
		return nil, errors.New("the study is not done")
	}
	p := s.SMC.Sample()
	return &p, nil
}
