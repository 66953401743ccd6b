package judge

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"parley/method"
)

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
		"attacker, who knows all else, says which it was. Differencing two studies, he knows one person's row and says whether that\n"+
		"person has left; his (ε, δ) is that of both charges. A coin is right in 50 %%. In brackets: limits of the true share, each missed with a\n"+
		"probability of at most %g. The test fails if the lower one is above what is allowed. The noise is drawn anew in every run.\n", t.Adjacency, r.Releases, r.FalseFailure)
	fmt.Fprintf(w, "That no better attack is here does not prove that there is none; the bounds of private releases do.\n")
}
