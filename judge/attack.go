package judge

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/mathext"

	"parley/dataset"
	"parley/internal/version"
	"parley/method"
	"parley/privacy"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
)

// AttackConfig says what to attack.
type AttackConfig struct {
	Method method.Method
	// Plan and Data are a plan of the method and the rows of its simulated sites; nil
	// for the method's own example. Rows are only read: what is printed is counts
	// and errors.
	Plan     *study.Plan
	Data     map[string]dataset.Source
	Seed     uint64            // of all that is drawn but noise
	Epsilons []float64         // totals of private studies; that of Plan is added
	Releases int               // of each of two neighbouring data sets, at least minReleases
	Tell     func(what string) // is called before each attack; may be nil

	options []privacy.Option // of the gates
}

// minReleases of each of two data sets are the fewest that tell anything.
const minReleases = 100

const maxReleases = 1_000_000

// defaultDelta is that of private studies where no plan says another.
const defaultDelta = 1e-5

// AttackReport is what came of all attacks.
type AttackReport struct {
	Program  string `json:"program"`
	Method   string `json:"method"`
	Study    string `json:"study,omitempty"` // name of the plan; nothing for the example
	Seed     uint64 `json:"seed"`
	Releases int    `json:"releases"` // of each of two data sets
	// FalseFailure bounds the probability that a test of a private release fails
	// although the release is what it claims to be.
	FalseFailure float64         `json:"false_failure"`
	OK           bool            `json:"ok"` // everything went as the method's documentation says
	Attacks      []AttackOutcome `json:"attacks"`
}

// AttackOutcome is one attack, judged.
type AttackOutcome struct {
	method.Attack
	// Accuracy is the share of right answers of [method.ToldApart], Low and High the
	// limits of its Clopper–Pearson interval, each of which is missed with a
	// probability of at most FalseFailure.
	Accuracy float64 `json:"accuracy,omitempty"`
	Low      float64 `json:"low,omitempty"`
	High     float64 `json:"high,omitempty"`
	OK       bool    `json:"ok"`
	Failed   string  `json:"failed,omitempty"` // what is not as documented
}

// falseFailure of each limit. Each budget has one that can fail a run falsely: with two
// budgets, at most one run in 500 000.
const falseFailure = 1e-6

// AttackTargets lists the methods that can be attacked.
func AttackTargets(r method.Registry) (names []string) {
	for _, m := range r {
		if _, ok := m.(method.Attackable); ok {
			names = append(names, m.Name())
		}
	}
	return names
}

// Attack mounts every attack that the method knows. An error means that they could not
// be mounted; that one did better than it may is in the report.
func Attack(ctx context.Context, c AttackConfig) (*AttackReport, error) {
	able, ok := c.Method.(method.Attackable)
	if !ok {
		return nil, problem.Problem{Where: "method " + c.Method.Name(), What: "knows no attacks on itself"}
	}
	t, err := c.aim()
	if err != nil {
		return nil, err
	}
	attacks, err := able.Attack(ctx, laboratory{c.Method, c.options}, t)
	if err != nil {
		return nil, err
	}
	r := &AttackReport{Program: "parley " + version.Number, Method: c.Method.Name(), Seed: c.Seed, Releases: c.Releases, FalseFailure: falseFailure, OK: true, Attacks: []AttackOutcome{}}
	if c.Plan != nil {
		r.Study = c.Plan.Name
	}
	for _, a := range attacks {
		o := outcomeOfAttack(a)
		r.Attacks = append(r.Attacks, o)
		r.OK = r.OK && o.OK
	}
	return r, nil
}

// aim checks what was asked for, and says what is attacked.
func (c *AttackConfig) aim() (method.Target, error) {
	t := method.Target{Plan: c.Plan, Data: c.Data, Seed: c.Seed, Epsilons: slices.Clone(c.Epsilons), Delta: defaultDelta, Adjacency: account.AddRemove, Releases: c.Releases, Tell: c.Tell}
	var wrong problem.List
	if p := c.Plan; p != nil {
		if p.Method.Name != c.Method.Name() {
			wrong = append(wrong, problem.Problem{Where: "method.name", What: fmt.Sprintf("the plan is of method %s, and %s is to be attacked", p.Method.Name, c.Method.Name()), Hint: "a plan of method " + c.Method.Name() + ", or none for the example"})
		}
		if pr := p.Privacy; pr.Differential() {
			t.Adjacency = pr.Adjacency
			if pr.Total != nil {
				t.Delta = pr.Total.Delta
				t.Epsilons = append(t.Epsilons, pr.Total.Epsilon)
			}
		}
	}
	for _, e := range t.Epsilons {
		if !(e > 0) || math.IsInf(e, 1) {
			wrong = append(wrong, problem.Problem{Where: "epsilon", What: fmt.Sprintf("%v is not positive and finite", e), Hint: "such as 1,5"})
		}
	}
	if c.Releases < minReleases || c.Releases > maxReleases {
		wrong = append(wrong, problem.Problem{Where: "releases", What: fmt.Sprintf("%d releases of each of two data sets", c.Releases), Hint: fmt.Sprintf("from %d, which tell little, to %d", minReleases, maxReleases)})
	}
	slices.Sort(t.Epsilons)
	t.Epsilons = slices.Compact(t.Epsilons)
	return t, wrong.Err()
}

// judge holds what came of an attack against what is documented: a demonstration has
// to succeed, and a private release has to hide what it claims to hide.
func outcomeOfAttack(a method.Attack) AttackOutcome {
	o := AttackOutcome{Attack: a}
	var failed []string
	if r := a.Recovered; r != nil && r.Found < r.Expected {
		failed = append(failed, fmt.Sprintf("%d of %d rows were found, where the documentation says at least %d", r.Found, r.Rows, r.Expected))
	}
	if t := a.ToldApart; t != nil {
		o.Accuracy = float64(t.Right) / float64(t.Trials)
		o.Low, o.High = clopperPearson(t.Right, t.Trials, falseFailure)
		for _, bound := range []struct {
			most float64
			of   string
		}{{t.Allowed, "(ε, δ) allows"}, {t.Mechanism, "the noise allows"}} {
			if o.Low > bound.most {
				failed = append(failed, fmt.Sprintf("at least %.4f are right in the long run, and %s %.4f", o.Low, bound.of, bound.most))
			}
		}
	}
	o.Failed = strings.Join(failed, "; ")
	o.OK = o.Failed == ""
	return o
}

// clopperPearson returns limits of the probability of which right of trials came,
// each of which is missed with a probability of at most level, whatever it is (Clopper
// and Pearson, 1934).
func clopperPearson(right, trials int, level float64) (low, high float64) {
	high = 1
	if right > 0 {
		low = mathext.InvRegIncBeta(float64(right), float64(trials-right+1), level)
	}
	if right < trials {
		high = mathext.InvRegIncBeta(float64(right+1), float64(trials-right), 1-level)
	}
	return low, high
}

// Print writes the report for a terminal.
func (r *AttackReport) Print(w io.Writer) error {
	of := "an example that was made on the spot"
	if r.Study != "" {
		of = "the rows of study " + r.Study
	}
	fmt.Fprintf(w, "Attacks on %s, on simulated studies of %s (seed %d).\n", r.Method, of, r.Seed)
	for _, o := range r.Attacks {
		if o.Recovered != nil {
			fmt.Fprintf(w, "Errors are in standard deviations of rows within their sites (%.3g, root mean square over features): a guess of the site's mean has 1.\n", o.Recovered.SD)
			break
		}
	}
	variant := ""
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, o := range r.Attacks {
		if o.Variant != variant {
			if err := out.Flush(); err != nil {
				return err
			}
			variant = o.Variant
			fmt.Fprintf(w, "\n%s\n", variant)
		}
		fmt.Fprintf(out, "  %s\t%d %s\t%s\n", o.Name, o.Answers, o.Of, o.found())
	}
	if err := out.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nWhat the attacker needs\n")
	said := map[string]bool{}
	for _, o := range r.Attacks {
		manner := "passive"
		if o.Active {
			manner = "active"
		}
		line := fmt.Sprintf("  %s (%s): %s", o.Name, manner, o.Needs)
		if !said[line] {
			said[line] = true
			fmt.Fprintln(w, line)
		}
	}
	r.explain(w)
	return nil
}

// found says what an attack has come to.
func (o *AttackOutcome) found() string {
	var b strings.Builder
	if x := o.Recovered; x != nil {
		fmt.Fprintf(&b, "%d of %d rows within %g sd, RMSE %.2g sd", x.Found, x.Rows, x.Within, x.RMSE)
		if x.Blind >= 0.5 {
			fmt.Fprintf(&b, "; guessing the site's mean finds %.0f", x.Blind)
		}
	}
	if t := o.ToldApart; t != nil {
		fmt.Fprintf(&b, "right in %s of %d trials (%s to %s); the noise allows %s, (ε %g, δ %g) %s",
			percent(o.Accuracy), t.Trials, percent(o.Low), percent(o.High), percent(t.Mechanism), t.Epsilon, t.Delta, percent(t.Allowed))
	}
	if !o.OK {
		fmt.Fprintf(&b, "  NOT AS DOCUMENTED: %s", o.Failed)
	}
	return b.String()
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

// explain says how to read the lines on telling neighbours apart, if there are any.
func (r *AttackReport) explain(w io.Writer) {
	var t *method.ToldApart
	for _, o := range r.Attacks {
		if o.ToldApart != nil {
			t = o.ToldApart
		}
	}
	if t == nil {
		return
	}
	fmt.Fprintf(w, "\nTelling neighbours apart (%s): %d releases of each of two data sets that differ by one person, chosen as badly as may be; the\n"+
		"attacker, who knows all else, says which it was. A coin is right in 50 %%. In brackets: limits of the true share, each missed\n"+
		"with a probability of at most %g. The test fails if the lower one is above what is allowed. The noise is drawn anew in every run.\n", t.Adjacency, r.Releases, r.FalseFailure)
	fmt.Fprintf(w, "That no better attack is here does not prove that there is none; the bounds of private releases do.\n")
}
