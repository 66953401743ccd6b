package judge

import (
	"context"
	"fmt"
	"io"
	"strings"

	"parley/dataset"
	"parley/internal/version"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// AttackConfig says what to attack.
type AttackConfig struct {
	Method method.Method
	// Plan and Data are a plan of the method and the rows of its simulated sites; nil
	// for the method's own example. Rows are only read: what is printed is counts
	// and errors.
	Plan *study.Plan
	Data map[string]dataset.Source
	Seed uint64            // of all that is drawn but noise
	Tell func(what string) // is called before each attack; may be nil
}

// AttackReport is what came of all attacks.
type AttackReport struct {
	Program string          `json:"program"`
	Method  string          `json:"method"`
	Study   string          `json:"study,omitempty"` // name of the plan; nothing for the example
	Seed    uint64          `json:"seed"`
	OK      bool            `json:"ok"` // everything went as the method's documentation says
	Attacks []AttackOutcome `json:"attacks"`
}

// AttackOutcome is one attack, judged.
type AttackOutcome struct {
	method.Attack
	OK     bool   `json:"ok"`
	Failed string `json:"failed,omitempty"` // what is not as documented
}

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
		return nil, problem.Problem{Where: "method " + c.Method.Name(), What: "knows no attacks on itself",
			Hint: "what its releases tell is on the page of the method; what noise hides, its ε and δ bound for all " +
				"attacks"}
	}
	if p := c.Plan; p != nil && p.Method.Name != c.Method.Name() {
		return nil, problem.Problem{Where: "method.name",
			What: fmt.Sprintf("the plan is of method %s, and %s is to be attacked", p.Method.Name, c.Method.Name()),
			Hint: "a plan of method " + c.Method.Name() + ", or none for the example"}
	}
	attacks, err := able.Attack(ctx, laboratory{c.Method}, method.Target{Plan: c.Plan, Data: c.Data, Seed: c.Seed,
		Tell: c.Tell})
	if err != nil {
		return nil, err
	}
	r := &AttackReport{Program: "parley " + version.Number, Method: c.Method.Name(), Seed: c.Seed, OK: true,
		Attacks: []AttackOutcome{}}
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

// outcomeOfAttack holds what came of an attack against what is documented: a demonstration has to succeed.
func outcomeOfAttack(a method.Attack) AttackOutcome {
	o := AttackOutcome{Attack: a, OK: true}
	if r := a.Recovered; r != nil && r.Found < r.Expected {
		o.OK, o.Failed = false, fmt.Sprintf("%d of %d rows were found, where the documentation says at least %d",
			r.Found, r.Rows, r.Expected)
	}
	return o
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
			fmt.Fprintf(w, "Errors are in standard deviations of rows within their sites (%.3g, root mean square over "+
				"features): a guess of the site's mean has 1.\n", o.Recovered.SD)
			break
		}
	}
	fmt.Fprintln(w)
	for _, o := range r.Attacks {
		fmt.Fprintf(w, "  %s  %d %s  %s\n", o.Name, o.Answers, o.Of, o.found())
	}
	fmt.Fprintf(w, "\nWhat the attacker needs\n")
	for _, o := range r.Attacks {
		fmt.Fprintf(w, "  %s: %s\n", o.Name, o.Needs)
	}
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
	if !o.OK {
		fmt.Fprintf(&b, "  NOT AS DOCUMENTED: %s", o.Failed)
	}
	return b.String()
}
