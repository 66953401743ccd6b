// Package judge finds out how good a plan is, before anybody runs it or beside a run:
// [Evaluate] scores its method by cross-validation on rows that are here, beside references
// that anybody could have; [Simulate] draws populations and says what each privacy budget
// leaves to learn; and a [Selection] chooses a number that a plan leaves open, such as that
// of factors, from rows or from what a study's sites have released ([OpenStudy]).
//
// All of it falls into many small trials, each of which depends on the plan, the data and
// the settings alone. [Complete] keeps what came of one as soon as it is known, so that work
// that was stopped goes on where it was, and the outcome does not depend on how many run at a
// time. Of a private plan each trial has the plan's whole budget, and noise that nobody can
// repeat; its scores are exact all the same: an evaluation is a simulation on rows, and no
// release.
//
// [Attack] turns what simulated studies release against their rows: it hands what a curious coordinator would see to
// the attacks that a method knows of itself ([method.Attackable]), and judges what came of it by what the method's
// documentation says. A failed attack proves nothing; what is proved is the bound of a private release, which the noise
// was calibrated to, and here it is tried.
//
// Methods are known by their contract only.
package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/figure"
	"parley/internal/version"
	"parley/judge/evaluate"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// EvaluationConfig says what to evaluate.
type EvaluationConfig struct {
	Plan    *study.Plan
	Methods method.Registry

	Folds, Repeats int
	// Scenarios are those to simulate; none for all that the plan and its data
	// allow. [evaluate.Column] stands for the sites where subjects really are.
	Scenarios []evaluate.Scenario
	Sites     int // of the simulated scenarios; 0 for as many as the plan has
	// Label is the subject column to tell apart in latent space; "" for the plan's own.
	// What predicts an outcome is judged by that alone.
	Label string

	Dir      string         // keeps what was computed
	Workers  int            // experiments at a time; 0 for as many as there are processors
	Progress func(Progress) // may be nil; never called by two goroutines at a time
}

// Level is that of predictive intervals and of the intervals of differences.
const Level = 0.9

// evaluation is one evaluation at work.
type evaluation struct {
	EvaluationConfig
	method method.Evaluable
	judge  judge
	*population
	scenarios []evaluate.Scenario
	notes     problem.List
	promise   string // of a private plan, in words
}

// Evaluate evaluates. Everything that is wrong with the settings is found before the
// first fit.
func Evaluate(ctx context.Context, c EvaluationConfig) (*Evaluation, error) {
	e, err := prepareEvaluation(ctx, c)
	if err != nil {
		return nil, err
	}
	settings, err := e.settings()
	if err != nil {
		return nil, err
	}
	all := e.experiments()
	kept, err := Complete(ctx, Work{Dir: c.Dir, Folder: "folds", Kind: "evaluation", Workers: c.Workers,
		Progress: c.Progress}, settings, all, e.conduct)
	if err != nil {
		return nil, err
	}
	out, err := e.summarise(all, kept)
	if err != nil {
		return nil, err
	}
	out.EvaluationSettings = *settings
	return out, out.write(c.Dir, all, kept)
}

func prepareEvaluation(ctx context.Context, c EvaluationConfig) (*evaluation, error) {
	m, _ := c.Methods.Lookup(c.Plan.Method.Name)
	able, ok := m.(method.Evaluable)
	if !ok {
		return nil, problem.Problem{Where: "method.name",
			What: fmt.Sprintf("method %q has no models that could be scored", c.Plan.Method.Name)}
	}
	if c.Repeats < 1 {
		return nil, problem.Problem{Where: "--repeats", What: fmt.Sprintf("%d repeats", c.Repeats), Hint: "at least 1"}
	}
	j, err := judgeOf(able, c.Plan)
	if err != nil {
		return nil, err
	}
	p, err := load(ctx, &c, j)
	if err != nil {
		return nil, err
	}
	e := &evaluation{EvaluationConfig: c, method: able, judge: j, population: p}
	e.notes = append(e.notes, p.notes...)
	if err := e.checkScenarios(); err != nil {
		return nil, err
	}
	return e, e.checkPrivacy()
}

// checkScenarios settles on the scenarios and tries how each would divide the
// subjects.
func (e *evaluation) checkScenarios() error {
	if _, err := evaluate.FoldsOf(e.subjects(e.labels), e.Folds, 0, 0); err != nil {
		return problem.Problem{Where: "--folds", What: fmt.Sprintf("%d folds of %d subjects", e.Folds, e.rows.Len()),
			Hint: fmt.Sprintf("from 2 to %d", e.rows.Len())}
	}
	wanted := e.Scenarios
	if len(wanted) == 0 && e.own != nil {
		wanted = []evaluate.Scenario{evaluate.Column}
	}
	if len(wanted) == 0 {
		wanted = []evaluate.Scenario{evaluate.IID, evaluate.G, evaluate.K, evaluate.GK}
		if e.scheme != nil {
			wanted = append(wanted, evaluate.Unequal)
		}
	}
	for _, sc := range wanted {
		err := e.tryScenario(sc)
		switch {
		case err == nil:
			e.scenarios = append(e.scenarios, sc)
		case len(e.Scenarios) > 0:
			return problem.Problem{Where: "--scenarios", What: err.Error(), Hint: e.scenarioHint()}
		default:
			e.notes.Add(problem.Problem{Where: "scenario " + sc.String(), What: "left out: " +
				strings.TrimPrefix(err.Error(), "scenario "+sc.String()+": "),
				Hint: "every site needs a subject beside those that are held out: evaluate a plan without its " +
					"smallest sites"})
		}
	}
	if len(e.scenarios) == 0 {
		return e.notes.Err()
	}
	return nil
}

func (e *evaluation) scenarioHint() string {
	if e.Plan.Local.Sites != nil {
		return "leave out --scenarios: the plan gives each site a folder, and its subjects stay there"
	}
	if e.scheme != nil {
		return "use some of iid, g, k, gk, unequal; G and G/K need two groups, K and G/K three views, unequal sites " +
			"an even number"
	}
	if e.own == nil {
		return "use some of iid, g, k, gk; G and G/K need local.split.by or a label with two levels, K and G/K three " +
			"views"
	}
	return "use some of iid, g, k, gk, column"
}

func (e *evaluation) tryScenario(sc evaluate.Scenario) error {
	if sc == evaluate.Column && e.own == nil {
		return errors.New("scenario column: the plan does not say at which site a subject is")
	}
	if sc != evaluate.Column && e.Plan.Local.Sites != nil {
		return fmt.Errorf("scenario %v: sites that have their own data are not simulated", sc)
	}
	if sc == evaluate.Unequal && e.scheme == nil {
		return errors.New("scenario unequal: the plan does not say how far sites differ: local.split must have that " +
			"scenario")
	}
	if (sc == evaluate.G || sc == evaluate.GK) && e.groupColumn == "" {
		return fmt.Errorf("scenario %v: there is no column that says which groups to divide", sc)
	}
	for i := range e.Folds {
		if _, err := e.split(experiment{part: partFolds, scenario: sc, index: i}); err != nil {
			return err
		}
	}
	return nil
}

// checkPrivacy finds out, of a private plan, what it promises, and that it can
// be kept. An evaluation is none of its studies: it knows every row.
func (e *evaluation) checkPrivacy() error {
	if !e.Plan.Privacy.Differential() {
		return nil
	}
	cost, err := e.Methods.Cost(e.Plan)
	if err != nil {
		return err
	}
	e.promise = strings.Join(cost.Lines(), "; ")
	e.notes.Add(problem.Problem{Where: "privacy", What: "these are simulations on rows, and the numbers are not " +
		"protected: every federated fit is a study of its own with fresh noise, but its scores come from rows as " +
		"they are, and no reference but single sites has noise; the sites' ledgers and policies have no part in it"})
	return nil
}

// privacySection says what a private plan means for an evaluation; only where
// there is one.
func (ev *Evaluation) privacySection() (figure.Section, bool) {
	return figure.Section{ID: "privacy", Title: "Privacy", Items: []figure.Item{{Note: &figure.Note{
		Title: "Simulated on rows: nothing on this page is protected", Warning: true,
		Text: fmt.Sprintf("The plan is private: %s. Each fit of the plan's method here, over all sites or at one "+
			"alone, was a study of its own in one process, with that whole budget for its own training subjects, and "+
			"with noise drawn afresh. So the page tells what a study under this plan may be expected to reach; the "+
			"same evaluation made anew gives other numbers.\n\nBut one process read the rows of all sites, the scores "+
			"are exact sums over subjects held out, and no reference but single sites has any noise. No ledger was "+
			"charged, and no site's policy was asked. Show the numbers only to those who may see the rows, or "+
			"evaluate on data that are nobody's.", ev.promise),
	}}}}, ev.promise != ""
}

// store keeps records.
type store = Store[foldRecord]

// EvaluationSettings are what an experiment's outcome depends on. Repeats and scenarios
// are not among them: more of them may be asked for later.
type EvaluationSettings struct {
	Program string   `json:"program"`
	Study   string   `json:"study"`
	Plan    string   `json:"plan_sha256"`
	Data    string   `json:"data_sha256"`
	Folds   int      `json:"folds"`
	Sites   []string `json:"sites"`  // simulated, or real
	Groups  string   `json:"groups"` // the column that G and G/K divide by
	// the column that folds are stratified by: what is told apart in latent space, or predicted
	Label  string   `json:"label"`
	Scheme string   `json:"scheme,omitempty"` // how far unequal sites differ
	Unused []string `json:"unused,omitempty"` // values of the column of groups, of which nobody is at a site
}

func (e *evaluation) settings() (*EvaluationSettings, error) {
	digest, err := e.Plan.Digest()
	if err != nil {
		return nil, err
	}
	s := &EvaluationSettings{
		Program: "parley " + version.Number, Study: e.Plan.Name, Plan: digest.String(), Data: e.fingerprint,
		Folds: e.Folds, Sites: e.sites, Groups: e.groupColumn, Label: e.Label,
	}
	if e.scheme != nil {
		s.Scheme = e.scheme.String()
	}
	if split := e.Plan.Local.Split; split != nil {
		s.Unused = split.Unused
	}
	return s, nil
}

// Differs names what another evaluation was made with, or returns "".
func (s *EvaluationSettings) Differs(old *EvaluationSettings) string {
	for _, c := range []struct{ what, was, is string }{
		{"program", old.Program, s.Program},
		{"plan", fmt.Sprintf("%.12s", old.Plan), fmt.Sprintf("%.12s", s.Plan)},
		{"data", fmt.Sprintf("%.12s", old.Data), fmt.Sprintf("%.12s", s.Data)},
		{"folds", fmt.Sprint(old.Folds), fmt.Sprint(s.Folds)},
		{"sites", strings.Join(old.Sites, " "), strings.Join(s.Sites, " ")},
		{"column of groups", old.Groups, s.Groups},
		{"label", old.Label, s.Label},
		{"local.split of unequal sites", old.Scheme, s.Scheme},
		{"local.split.unused", strings.Join(old.Unused, " "), strings.Join(s.Unused, " ")},
	} {
		if c.was != c.is {
			return fmt.Sprintf("%s %s, not %s", c.what, c.was, c.is)
		}
	}
	return ""
}

// foldRecord is what came of one experiment.
type foldRecord struct {
	Scores      map[string]evaluate.Marks        `json:"scores"`                // by fit
	Calibration map[string]*evaluate.Calibration `json:"calibration,omitempty"` // by fit, of classes
	// Home is by fit and site: of those held out of the site alone, where one site alone is
	// that site. Of features, "" is all of these together.
	Home map[string]map[string]evaluate.Marks `json:"home,omitempty"`
	// why a fit could not be made, or not at every site
	Failed map[string]string `json:"failed,omitempty"`
}

func (r *foldRecord) add(fit string, s *scored) {
	r.Scores[fit] = s.marks
	if s.home != nil {
		if r.Home == nil {
			r.Home = map[string]map[string]evaluate.Marks{}
		}
		r.Home[fit] = s.home
		if s.beside != nil {
			r.Home[Federated] = s.beside
		}
	}
	if s.calibration == nil {
		return
	}
	if r.Calibration == nil {
		r.Calibration = map[string]*evaluate.Calibration{}
	}
	r.Calibration[fit] = s.calibration
}

// against is what a fit is compared with: the federated fit, where it was asked about
// the same subjects.
func (r *foldRecord) against(fit string) evaluate.Marks {
	if same, ok := r.Home[Federated][everySite]; ok && fit == Alone {
		return same
	}
	return r.Scores[Federated]
}

// at is what is known of those held out of one site.
func (r *foldRecord) at(site string) *foldRecord {
	own := &foldRecord{Scores: map[string]evaluate.Marks{}}
	for fit, sites := range r.Home {
		if marks, ok := sites[site]; ok {
			own.Scores[fit] = marks
		}
	}
	return own
}
