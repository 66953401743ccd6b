package judge

import (
	"context"
	"fmt"
	"math"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/version"
	"parley/judge/evaluate"
	"parley/method"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// SimulationConfig says what to simulate.
type SimulationConfig struct {
	Plan    *study.Plan
	Methods method.Registry

	Epsilons []float64 // totals to try; that of the plan is always among them
	Subjects []int     // numbers of subjects at each site to try
	Repeats  int       // populations to draw for each
	// Noise is the share of variance that nothing explains, between 0 and 1; see [method.Simulation]. 0 takes 0.3, and
	// for an outcome of classes or events the share at which an AUC of 0.7 is what there is to learn.
	Noise float64

	Dir      string         // keeps what was computed
	Workers  int            // simulations at a time; 0 for as many as there are processors
	Progress func(Progress) // may be nil; never called by two goroutines at a time
}

// Held is how many subjects of each population are kept for scoring.
const Held = 500

// simulation is one curve in the making.
type simulation struct {
	SimulationConfig
	able  method.Simulator
	fits  method.Evaluable
	score scorer
}

// Simulate simulates. Everything that is wrong with the plan and the settings is
// found before the first study.
func Simulate(ctx context.Context, c SimulationConfig) (*Curve, error) {
	s, err := prepareSimulation(c)
	if err != nil {
		return nil, err
	}
	settings, err := s.settings()
	if err != nil {
		return nil, err
	}
	all := s.trials()
	kept, err := Complete(ctx, Work{Dir: c.Dir, Folder: "simulations", Kind: "simulation", Workers: c.Workers,
		Progress: c.Progress}, settings, all, s.conduct)
	if err != nil {
		return nil, err
	}
	curve, err := s.summarise(settings, all, kept)
	if err != nil {
		return nil, err
	}
	return curve, curve.write(c.Dir)
}

func prepareSimulation(c SimulationConfig) (*simulation, error) {
	s := &simulation{SimulationConfig: c}
	m, _ := c.Methods.Lookup(c.Plan.Method.Name)
	able, ok := m.(method.Simulator)
	if !ok {
		return nil, problem.Problem{Where: "method.name", What: fmt.Sprintf("method %q cannot imagine data",
			c.Plan.Method.Name)}
	}
	s.able = able
	if s.fits, ok = m.(method.Evaluable); !ok {
		return nil, problem.Problem{Where: "method.name",
			What: fmt.Sprintf("results of method %q cannot be scored on subjects who took no part", m.Name())}
	}
	var err error
	if s.score, err = scorerOf(s.fits, c.Plan); err != nil {
		return nil, err
	}
	if s.Noise == 0 {
		s.Noise = s.score.scoring().share
	}
	if c.Plan.Privacy.Total == nil {
		hint := "privacy: {protection: differential, unit: …, adjacency: …, total: {epsilon: 3, delta: 1e-5}}"
		if c.Plan.Privacy.PerRelease != nil {
			hint = "a total in place of per_release, which promises nothing for the study"
		}
		return nil, problem.Problem{Where: "privacy.total", What: "the plan has no total budget that could be varied",
			Hint: hint}
	}
	var wrong problem.List
	for _, e := range c.Epsilons {
		if !(e > 0) || math.IsInf(e, 1) {
			wrong.Add(problem.Problem{Where: "--epsilon", What: fmt.Sprintf("%v is not positive", e),
				Hint: "such as 0.5,1,3,10"})
		}
	}
	for _, n := range c.Subjects {
		if n < 2 || n > maxSubjects {
			wrong.Add(problem.Problem{Where: "--subjects", What: fmt.Sprintf("%d subjects at each site", n),
				Hint: fmt.Sprintf("from 2 to %d", maxSubjects)})
		}
	}
	if len(c.Subjects) == 0 {
		wrong.Add(problem.Problem{Where: "--subjects", What: "no number of subjects", Hint: "such as 100,1000"})
	}
	if c.Repeats < 1 {
		wrong.Add(problem.Problem{Where: "--repeats", What: fmt.Sprintf("%d repeats", c.Repeats), Hint: "at least 1"})
	}
	if !(s.Noise > 0 && s.Noise < 1) {
		wrong.Add(problem.Problem{Where: "--noise-share", What: fmt.Sprintf("%v of the variance", s.Noise),
			Hint: "a share between 0 and 1, such as 0.3"})
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	s.Epsilons = sorted(append(slices.Clone(c.Epsilons), c.Plan.Privacy.Total.Epsilon))
	s.Subjects = sorted(slices.Clone(c.Subjects))
	for _, e := range s.Epsilons { // whether the method can keep it
		if _, err := c.Methods.Cost(withTotal(c.Plan, e)); err != nil {
			return nil, fmt.Errorf("ε %g: %w", e, err)
		}
	}
	return s, nil
}

// maxSubjects bounds what somebody types: rows are drawn anew whenever they are
// read, so it is time that they cost.
const maxSubjects = 1_000_000

func sorted[T int | float64](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// withTotal is a plan with another total. It keeps its δ and all else.
func withTotal(p *study.Plan, epsilon float64) *study.Plan {
	own := *p
	own.Local = nil
	own.Privacy.Person = "" // every subject that is made up is another person
	own.Privacy.Total = &account.Budget{Epsilon: epsilon, Delta: p.Privacy.Total.Delta}
	return &own
}

// The fits that are compared. What predicts an outcome is compared with the baseline
// of [evaluate.Outcome.Scoring].
const (
	Private = "private"         // the plan's study
	Open    = "without privacy" // the same model fitted to all rows in one place
)

// The measures of methods that reconstruct features, and Gain of every method.
// Errors are mean absolute errors, in parts of a feature's range among those held
// out. What predicts an outcome has those of [evaluate.Outcome.Scoring].
const (
	Error = "error" // of values held out, reconstructed from themselves
	// Gain is how much of what there is to learn the fit has learned: the way of
	// its first measure, the error, from that of the baseline to that without privacy. 1 is as
	// good as without privacy or better, which is luck; 0 no better than the baseline
	// or worse.
	Gain = "gain"
)

// simulated is one study of one population; with ε 0, the references.
type simulated struct {
	subjects, repeat int
	epsilon          float64
}

// String names the trial for people.
func (x simulated) String() string {
	what := "references"
	if x.epsilon > 0 {
		what = fmt.Sprintf("ε %g", x.epsilon)
	}
	return fmt.Sprintf("%d subjects at each site, population %d, %s", x.subjects, x.repeat+1, what)
}

// Key names the trial for files.
func (x simulated) Key() string {
	return fmt.Sprintf("subjects-%d-epsilon-%g-%03d", x.subjects, x.epsilon, x.repeat+1)
}

// simulatedRecord is what came of one trial.
type simulatedRecord struct {
	Scores map[string]evaluate.Marks `json:"scores"`           // by fit
	Failed string                    `json:"failed,omitempty"` // why the study found nothing
}

// trials lists everything to do, population by population, so that what is
// left is like what was done.
func (s *simulation) trials() []simulated {
	var all []simulated
	for r := range s.Repeats {
		for _, n := range s.Subjects {
			for _, e := range append([]float64{0}, s.Epsilons...) {
				all = append(all, simulated{n, r, e})
			}
		}
	}
	return all
}

// SimulationSettings are what a simulation's outcome depends on beside the noise. More
// budgets, numbers of subjects and repeats may be asked for later.
type SimulationSettings struct {
	Program string  `json:"program"`
	Study   string  `json:"study"`
	Plan    string  `json:"plan_sha256"`
	Noise   float64 `json:"noise_share"`
	Held    int     `json:"held_out"`
}

func (s *simulation) settings() (*SimulationSettings, error) {
	digest, err := s.Plan.Digest()
	if err != nil {
		return nil, err
	}
	return &SimulationSettings{"parley " + version.Number, s.Plan.Name, digest.String(), s.Noise, Held}, nil
}

// Differs implements [TrialSettings].
func (s *SimulationSettings) Differs(old *SimulationSettings) string {
	switch {
	case old.Program != s.Program:
		return fmt.Sprintf("program %s, not %s", old.Program, s.Program)
	case old.Plan != s.Plan:
		return fmt.Sprintf("plan %.12s, not %.12s", old.Plan, s.Plan)
	case *old != *s:
		return fmt.Sprintf("noise share %g, not %g", old.Noise, s.Noise)
	}
	return ""
}

// conduct draws a population and fits it. That noise leaves nothing to find is
// an outcome and no error.
func (s *simulation) conduct(ctx context.Context, x simulated) (*simulatedRecord, error) {
	drawn, err := s.able.Simulate(s.Plan, method.Simulation{
		Subjects: x.subjects, Held: Held, Seed: s.Plan.Seed + uint64(x.repeat), Noise: s.Noise,
	})
	if err != nil {
		return nil, err
	}
	plan := s.Plan
	if x.epsilon == 0 {
		return s.references(ctx, plan, s.pool(drawn), drawn.Held)
	}
	var scores evaluate.Marks
	out, err := local.Run(ctx, local.Config{Plan: withTotal(plan, x.epsilon), Methods: s.Methods, Data: drawn.Sites})
	if err == nil {
		var m evaluate.Model
		if m, err = s.fits.Evaluator(plan, out.Result.Files, false); err == nil {
			scores, err = s.score.score(ctx, m, drawn.Held)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return &simulatedRecord{Failed: err.Error()}, nil
	}
	return &simulatedRecord{Scores: map[string]evaluate.Marks{Private: scores}}, nil
}

// references scores what the studies are compared with, fitted to the rows of all
// sites: the baseline and, unless the method cannot make it, [Open].
func (s *simulation) references(ctx context.Context, p *study.Plan, rows,
	held dataset.Source) (*simulatedRecord, error) {
	r := &simulatedRecord{Scores: map[string]evaluate.Marks{}}
	baseline, err := s.score.baseline(ctx, rows)
	if err != nil {
		return nil, err
	}
	name := s.score.scoring().Baseline
	if r.Scores[name], err = s.score.score(ctx, baseline, held); err != nil {
		return nil, err
	}
	c, ok := s.fits.(method.Centraliser)
	if !ok {
		return r, nil
	}
	open, err := c.Central(ctx, p, rows)
	if err != nil {
		return nil, err
	}
	r.Scores[Open], err = s.score.score(ctx, open, held)
	return r, err
}

// pool is the rows of all sites, in the plan's order, which nobody but a simulation has.
func (s *simulation) pool(drawn *method.Simulated) (all dataset.Pooled) {
	for _, site := range s.Plan.Sites {
		all = append(all, drawn.Sites[site])
	}
	return all
}

// gains adds to the scores of a private fit what follows from the references
// of the same subjects: how far its first measure has come.
func (s *scoring) gains(private, references *simulatedRecord) {
	own, ok := private.Scores[Private]
	if !ok {
		return
	}
	first, baseline := s.Measures[0], references.Scores[s.Baseline]
	way := func(to evaluate.Marks) float64 { // from the baseline, in the direction that is better
		if first.Higher {
			return to[first.Name] - baseline[first.Name]
		}
		return baseline[first.Name] - to[first.Name]
	}
	if open, ok := references.Scores[Open]; ok && way(open) > 0 {
		own[Gain] = min(max(0, way(own)/way(open)), 1)
	}
}

// values are those of one measure in some records, in order.
func values(records []*simulatedRecord, fit, measure string) []float64 {
	var x []float64
	for _, r := range records {
		if v, ok := r.Scores[fit][measure]; ok {
			x = append(x, v)
		}
	}
	return slices.Clip(x)
}
