package graffl

import (
	"context"
	"flag"
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/tools/measure/flags"

	"gonum.org/v1/gonum/stat"

	"parley/engine/local"
	"parley/internal/cputime"
	"parley/method"
	"parley/methods/graffl"
	"parley/methods/graffl/augment"
	"parley/methods/graffl/options"
	"parley/study"
)

// scarceArms are the arms of a study with a scarce class, in the order of the tables.
var scarceArms = []augment.Arm{augment.Raw, augment.Oversampled, augment.SMOTEd, augment.Generated, augment.Borrowed}

// scarce repeats whole studies of a scarce class with other seeds: other rows are held,
// other encoders trained, other noise drawn.
func scarce(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("scarce", flag.ContinueOnError)
	seeds := set.Int("seeds", 30, "seeds of each plan: 1, 2, …; at least 2")
	plans := set.String("plans", "examples/icu/plan.yaml,examples/icu/private.yaml", "plans, with commas between")
	open := set.Bool("open", false, "without privacy, whatever the plans say")
	weights := set.String("reconstruction", "", "also with these weights of the encoder's reconstruction term, with commas between")
	var lambdas []float64
	if err := flags.Parse(set, args, func() (err error) {
		if *weights != "" {
			if lambdas, err = flags.Numbers(*weights); err != nil {
				return err
			}
		}
		if *seeds < 2 {
			return fmt.Errorf("want at least 2 seeds")
		}
		return nil
	}); err != nil {
		return err
	}
	for path := range strings.SplitSeq(*plans, ",") {
		variants := []scarcePlan{{path: path, open: *open}}
		for _, lambda := range lambdas {
			variants = append(variants, scarcePlan{path: path, open: *open, reconstruction: lambda})
		}
		for _, v := range variants {
			start := cputime.Used()
			t, err := v.measure(ctx, *seeds)
			if err != nil {
				return fmt.Errorf("%s: %w", v, err)
			}
			fmt.Printf("%s: means over %d seeds, rows that nothing was learned from; difference of synthetic rows and raw ± its standard error over seeds. %.1f CPU s a study.\n\n%s\n",
				v, *seeds, (cputime.Used()-start).Seconds()/float64(*seeds), t)
		}
	}
	return nil
}

// scarcePlan is a plan in a file, and what is changed in it.
type scarcePlan struct {
	path           string
	open           bool    // without privacy
	reconstruction float64 // weight in the encoder's training; 0 for the plan's
}

func (p scarcePlan) String() string {
	s := p.path
	if p.open {
		s += ", without privacy"
	}
	if p.reconstruction > 0 {
		s += fmt.Sprintf(", λ = %v", p.reconstruction)
	}
	return s
}

// load reads the plan, with another seed.
func (p scarcePlan) load(seed uint64) (*study.Plan, error) {
	plan, err := study.Load(p.path, grafflOnly)
	if err != nil {
		return nil, err
	}
	o, ok := plan.Method.Options.(*options.Options)
	if !ok || o.Scarce == nil || plan.Local == nil {
		return nil, fmt.Errorf("want a plan of method graffl with scarce, and with local data")
	}
	plan.Seed = seed
	if p.open {
		plan.Privacy = study.Privacy{Protection: study.ProtectionNone}
	}
	if p.reconstruction == 0 {
		return plan, nil
	}
	if o.Encoder == nil || o.Encoder.Kind != options.EncoderSuffiAE {
		return nil, fmt.Errorf("it trains no encoder")
	}
	o.Encoder.Reconstruction = p.reconstruction
	return plan, nil
}

// measure runs the plan with every seed.
func (p scarcePlan) measure(ctx context.Context, seeds int) (*scarceTable, error) {
	t := &scarceTable{metrics: map[string][]map[string]float64{}}
	for seed := range seeds {
		plan, err := p.load(uint64(seed + 1))
		if err == nil {
			err = t.study(ctx, plan)
		}
		if err != nil {
			return nil, fmt.Errorf("seed %d: %w", seed+1, err)
		}
	}
	return t, nil
}

// scarceTable is what the sites' own reports say, seeds one after the other.
type scarceTable struct {
	sites   []string
	metrics map[string][]map[string]float64 // by site; of controls, too, as "auc/" and their name
}

var grafflOnly = method.Registry{graffl.Method{}}

// study runs one study through the engine, in memory, and adds it to the table.
func (t *scarceTable) study(ctx context.Context, p *study.Plan) error {
	b, err := local.Bind(ctx, p)
	if err != nil {
		return err
	}
	config := local.Config{Plan: p, Methods: grafflOnly, Data: b.Data, Policy: b.Policy}
	out, err := local.Run(ctx, config)
	if err != nil {
		return err
	}
	reports, err := out.SiteReports(ctx)
	if err != nil {
		return err
	}
	t.sites = p.Sites
	others, err := controls(ctx, p, b.Data)
	if err != nil {
		return err
	}
	for site, r := range reports {
		for name, auc := range others[site] {
			r.Result.Metrics["auc/"+string(name)] = auc
		}
		t.metrics[site] = append(t.metrics[site], r.Result.Metrics)
	}
	return nil
}

// column returns a number of every study; NaN where a study has none.
func (t *scarceTable) column(site, name string) (all []float64) {
	for _, m := range t.metrics[site] {
		x, ok := m[name]
		if !ok {
			x = math.NaN()
		}
		all = append(all, x)
	}
	return all
}

// String returns the tables as Markdown: AUC, what needs nothing made up first, with the difference that synthetic rows make,
// and F1.
func (t *scarceTable) String() string {
	arms := slices.DeleteFunc(slices.Clone(scarceArms), func(a augment.Arm) bool {
		return !slices.ContainsFunc(t.sites, func(site string) bool { return !math.IsNaN(stat.Mean(t.column(site, "auc/"+string(a)), nil)) })
	})
	var b strings.Builder
	header := func(what string, columns []augment.Arm, more ...string) {
		b.WriteString("| " + what)
		for _, a := range columns {
			fmt.Fprintf(&b, " | %s", a)
		}
		for _, m := range more {
			b.WriteString(" | " + m)
		}
		b.WriteString(" |\n|---" + strings.Repeat("|---:", len(columns)+len(more)) + "|\n")
	}
	first := slices.Concat(scarceControls, arms)
	header("AUC, held", first, "difference", "kept")
	for _, site := range t.sites {
		b.WriteString("| " + site)
		for _, a := range first {
			fmt.Fprintf(&b, " | %.3f", stat.Mean(t.column(site, "auc/"+string(a)), nil))
		}
		difference := t.column(site, "auc/"+string(augment.Generated))
		for i, raw := range t.column(site, "auc/"+string(augment.Raw)) {
			difference[i] -= raw
		}
		mean, sd := stat.MeanStdDev(difference, nil)
		kept := t.column(site, "kept")
		fmt.Fprintf(&b, " | %+.3f ± %.3f | %.0f of %d |\n", mean, sd/math.Sqrt(float64(len(difference))), stat.Mean(kept, nil)*float64(len(kept)), len(kept))
	}
	b.WriteString("\n")
	header("F1 at ½, held", arms)
	for _, site := range t.sites {
		b.WriteString("| " + site)
		for _, a := range arms {
			fmt.Fprintf(&b, " | %.2f", stat.Mean(t.column(site, "f1/"+string(a)), nil))
		}
		b.WriteString(" |\n")
	}
	return b.String()
}
