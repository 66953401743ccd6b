package judge

import (
	"context"
	"fmt"
	"slices"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/version"
	"parley/judge/evaluate"
	"parley/method"
	"parley/study"
)

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
	plan := s.sized(x.subjects)
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
func (s *simulation) references(ctx context.Context, p *study.Plan, rows, held dataset.Source) (*simulatedRecord, error) {
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

// sized is the plan of sites with so many subjects each.
func (s *simulation) sized(subjects int) *study.Plan {
	m, ok := s.fits.(method.Sizer)
	if !ok {
		return s.Plan
	}
	at := map[string]int{}
	for _, site := range s.Plan.Sites {
		at[site] = subjects
	}
	return m.Sized(s.Plan, at)
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
