package graffl

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"parley/tools/measure/flags"

	"parley/internal/cputime"
	"parley/methods/graffl/augment"
)

// applied measures what synthetic rows of a scarce class are worth, on two public data sets,
// beside everything that a site could do without them.
func applied(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("applied", flag.ContinueOnError)
	dir := set.String("data", "../shared/data", "folder of the data sets")
	sets := set.String("sets", "heart,physionet", "data sets, with commas between")
	splits := set.Int("splits", 0, "splits of each setting, from seeds 1, 2, …; 0 for each set's own number: heart 10, physionet 3")
	proposals := set.Int("proposals", 200_000, "proposals of the published algorithm")
	var chosen []appliedSet
	if err := flags.Parse(set, args, func() error {
		for name := range strings.SplitSeq(*sets, ",") {
			i := slices.IndexFunc(appliedSets, func(s appliedSet) bool { return s.name == name })
			if i < 0 {
				return fmt.Errorf("%q is no data set", name)
			}
			chosen = append(chosen, appliedSets[i])
		}
		if *splits < 0 || *proposals < 1 {
			return fmt.Errorf("want at least 1 proposal, and no negative number of splits")
		}
		return nil
	}); err != nil {
		return err
	}
	for _, s := range chosen {
		t, err := s.read(*dir)
		if err != nil {
			return err
		}
		if *splits > 0 {
			s.splits = *splits
		}
		r, err := s.measure(ctx, t, *proposals)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Println(r)
	}
	return nil
}

// appliedTable is what came out for one data set.
type appliedTable struct {
	name     string
	splits   int
	settings []string
	arms     []string // in the order of measurement
	cells    map[string][]appliedCell
	verdicts []map[augment.Verdict]int
	seconds  float64
}

// appliedCell is the scores of one arm in one setting, splits one after the other.
type appliedCell struct{ auc, f1 []appliedMean }

type appliedMean struct{ sum, n float64 }

func (m appliedMean) mean() float64 { return m.sum / m.n }

// measure measures all arms of all settings.
func (s appliedSet) measure(ctx context.Context, t table, proposals int) (*appliedTable, error) {
	out := &appliedTable{name: s.name, splits: s.splits, cells: map[string][]appliedCell{}}
	start := cputime.Used()
	for at, setting := range s.settings {
		out.settings = append(out.settings, fmt.Sprintf("%s, d = %d", setting.name, setting.codes))
		out.verdicts = append(out.verdicts, map[augment.Verdict]int{})
		for split := range s.splits {
			seed := uint64(split + 1)
			d, err := t.split(setting, rand.New(rand.NewPCG(seed, 0)))
			if err != nil {
				return nil, err
			}
			run := &appliedRun{dealt: d, codes: setting.codes, hidden: s.hidden, proposals: proposals, seed: seed,
				score:   func(arm string, auc, f1 float64) { out.add(arm, at, split, auc, f1) },
				verdict: func(v augment.Verdict) { out.verdicts[at][v]++ }}
			if err := run.do(ctx); err != nil {
				return nil, fmt.Errorf("%s, split %d: %w", setting.name, seed, err)
			}
		}
	}
	out.seconds = (cputime.Used() - start).Seconds()
	return out, nil
}

func (t *appliedTable) add(arm string, setting, split int, auc, f1 float64) {
	if t.cells[arm] == nil {
		t.arms = append(t.arms, arm)
	}
	for len(t.cells[arm]) <= setting {
		t.cells[arm] = append(t.cells[arm], appliedCell{})
	}
	c := &t.cells[arm][setting]
	for len(c.auc) <= split {
		c.auc, c.f1 = append(c.auc, appliedMean{}), append(c.f1, appliedMean{})
	}
	c.auc[split] = appliedMean{c.auc[split].sum + auc, c.auc[split].n + 1}
	c.f1[split] = appliedMean{c.f1[split].sum + f1, c.f1[split].n + 1}
}

// String returns the table as Markdown.
func (t *appliedTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: AUC ± its standard deviation over splits / F1 at ½, means over target sites and %d splits; d numbers in a code, landmarks up to %d. %.0f CPU s.\n\n", t.name, t.splits, maxLandmarkCodes, t.seconds)
	fmt.Fprintf(&b, "| | %s |\n|---%s|\n", strings.Join(t.settings, " | "), strings.Repeat("|---:", len(t.settings)))
	for _, arm := range t.arms {
		fmt.Fprintf(&b, "| %s |", arm)
		for at := range t.settings {
			cell := ""
			if at < len(t.cells[arm]) {
				cell = t.cells[arm][at].String()
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	b.WriteString("| the verdicts |")
	for _, v := range t.verdicts {
		var said []string
		for _, verdict := range slices.Sorted(maps.Keys(v)) {
			said = append(said, fmt.Sprintf("%s %d", verdict, v[verdict]))
		}
		fmt.Fprintf(&b, " %s |", strings.Join(said, ", "))
	}
	b.WriteString("\n")
	return b.String()
}

func (c appliedCell) String() string {
	if len(c.auc) == 0 {
		return ""
	}
	mean, squares, f1, n := 0.0, 0.0, 0.0, float64(len(c.auc))
	for i, m := range c.auc {
		mean += m.mean() / n
		f1 += c.f1[i].mean() / n
	}
	for _, m := range c.auc {
		squares += (m.mean() - mean) * (m.mean() - mean)
	}
	sd := math.NaN()
	if n > 1 {
		sd = math.Sqrt(squares / (n - 1))
	}
	return fmt.Sprintf("%.3f ± %.3f / %.2f", mean, sd, f1)
}
