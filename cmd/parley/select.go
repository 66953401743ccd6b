package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/engine/local"
	"parley/judge"
	"parley/method"
	"parley/problem"
	"parley/study"
)

// selectFlags are the flags of parley select.
type selectFlags struct {
	values map[string]*string // by the option that is chosen
	out    string
	as     form
}

func selectCommand() *cobra.Command {
	f := selectFlags{values: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "select PLAN|RESULTS --latent 1..8 | --components 1..6",
		Short: "Choose the number of factors or components",
		Long: "Fit the study with every number of factors given to nine tenths of the subjects, and recommend\n" +
			"one by how likely the others are. With RESULTS of a private study, or of a mixture, it chooses from\n" +
			"what the sites released: no site is asked again, and it costs no more privacy.",
		RunE: func(cmd *cobra.Command, a []string) error {
			option := given(cmd, chosenOptions)
			values, err := parseCounts(*f.values[option])
			if err != nil {
				return &usageError{fmt.Errorf("--%s %s: %w", option, *f.values[option], err)}
			}
			if err := checkFolder(f.out); err != nil {
				return err
			}
			if info, err := os.Stat(a[0]); err == nil && info.IsDir() {
				return f.fromResults(cmd, a[0], option, values)
			}
			return f.fromRows(cmd, a[0], option, values)
		},
	}
	flags := cmd.Flags()
	for _, option := range chosenOptions {
		f.values[option] = flags.String(option, "", "numbers of "+nounOf[option]+" to try, such as 1..8 or 2,4,6..10")
	}
	flags.StringVar(&f.out, "out", "", "directory for the results (default results/NAME-select-DIGEST)")
	f.as.flag(cmd, "print the recommendation and all scores as JSON")
	chooseOne(cmd)
	return cmd
}

// chosenOptions are the options of plans that select and refit change, each a flag.
var chosenOptions = []string{"latent", "components"}

var nounOf = map[string]string{"latent": "factors", "components": "components"}

// chooseOne demands one of the flags of [chosenOptions].
func chooseOne(cmd *cobra.Command) {
	cmd.MarkFlagsOneRequired(chosenOptions...)
	cmd.MarkFlagsMutuallyExclusive(chosenOptions...)
}

// given is the flag among names that a command line has.
func given(cmd *cobra.Command, names []string) string {
	return names[slices.IndexFunc(names, cmd.Flags().Changed)]
}

// checkChosen refuses a flag whose option is not what a method chooses.
func checkChosen(option, chooses, method string) error {
	if option == chooses {
		return nil
	}
	return &usageError{fmt.Errorf("--%s: method %s has no %s\n  hint: --%s", option, method, nounOf[option], chooses)}
}

// fromResults chooses from what the sites of a study have released.
func (f *selectFlags) fromResults(cmd *cobra.Command, path, option string, values []int) error {
	s, err := judge.OpenStudy(path, methods)
	if err != nil {
		return err
	}
	if err := checkChosen(option, s.Method.Chooses(), s.Plan.Method.Name); err != nil {
		return err
	}
	record := s.Record()
	if err := f.claim(record); err != nil {
		return err
	}
	show := newProgress(cmd)
	defer show.close()
	for _, line := range s.Origin.Lines() {
		show.line("privacy: %s", line)
	}
	chosen, err := s.Method.SelectReleased(cmd.Context(), method.HalfPlan(s.Plan), s.Released,
		method.SelectConfig{Values: values, Progress: show.share(time.Now)})
	if err != nil {
		return err
	}
	if chosen.Recommended > 0 {
		chosen.Notes.Add(problem.Problem{Where: option,
			What: fmt.Sprintf("parley model refit %s --%s %d --out DIR makes the model that is recommended",
				problem.Shell(path), option, chosen.Recommended)})
	}
	return f.finish(cmd, record, chosen, s.Plan, show)
}

// claim settles on a directory that nothing else is in.
func (f *selectFlags) claim(r *judge.Selection) error {
	if f.out == "" {
		f.out = filepath.Join("results", r.Study+"-select-"+r.Plan[:12])
	}
	return r.Claim(f.out)
}

// finish writes and prints what was chosen.
func (f *selectFlags) finish(cmd *cobra.Command, record *judge.Selection, chosen *method.Selection, plan *study.Plan,
	show *progress) error {
	record.Set(chosen)
	if err := record.Write(f.out, plan); err != nil {
		return err
	}
	show.close()
	chose := struct {
		Results string `json:"results"`
		*judge.Selection
	}{f.out, record}
	return f.as.line(cmd, chose, func(w io.Writer) error { return record.Print(w, f.out) })
}

// fromRows chooses from the sums of simulated sites.
func (f *selectFlags) fromRows(cmd *cobra.Command, path, option string, values []int) error {
	ctx := cmd.Context()
	plan, err := study.Load(path, methods)
	if err != nil {
		return err
	}
	m, _ := methods.Lookup(plan.Method.Name)
	selector, ok := m.(method.Selector)
	if !ok {
		return choosesFromResults(m, plan, path)
	}
	if err := checkChosen(option, selector.Chooses(), plan.Method.Name); err != nil {
		return err
	}
	if plan.Privacy.Differential() {
		return problem.Problem{File: path, Where: "privacy.protection",
			What: "the plan is private, and choosing from its rows would read them without any protection",
			Hint: "parley run " + path + " first, then parley select on its results, which costs nothing more"}
	}
	show := newProgress(cmd)
	defer show.close()
	binding, err := local.Bind(ctx, plan, nil)
	if err != nil {
		return err
	}
	for _, note := range binding.Notes {
		show.note(note)
	}
	record, err := judge.NewSelection(plan, binding.Fingerprint())
	if err != nil {
		return err
	}
	if err := f.claim(record); err != nil {
		return err
	}
	chosen, err := selector.Select(ctx, plan, binding.Data,
		method.SelectConfig{Values: values, Progress: show.share(time.Now)})
	if err != nil {
		return err
	}
	return f.finish(cmd, record, chosen, plan, show)
}

// choosesFromResults says of a plan whose method has no choice to make from rows where the choice
// is made, if anywhere.
func choosesFromResults(m method.Method, plan *study.Plan, path string) error {
	no := problem.Problem{File: path, Where: "method.name", What: "parley select chooses nothing for " +
		plan.Method.Name}
	if able, ok := m.(method.Refitter); ok {
		if _, err := able.ReleasedFile(plan); err != nil {
			return judge.InFile(path, err)
		}
		no.What = "parley select chooses for " + plan.Method.Name + " from what sites have released, and this is a plan"
		no.Hint = "parley run " + path + " first, then parley select on its results, which asks no site again"
	}
	return no
}

// maxCount bounds a list of numbers that somebody types.
const maxCount = 1000

// parseCounts reads numbers from 1 and ranges of them, such as 1..8 or
// 2,4,6..10, into an ascending list.
func parseCounts(text string) ([]int, error) {
	hint := "\n  hint: numbers and ranges such as 1..8 or 2,4,6..10"
	number := func(s string) (int, error) {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxCount {
			return 0, fmt.Errorf("%q is not a number from 1 to %d%s", s, maxCount, hint)
		}
		return n, nil
	}
	var list []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "..")
		low, err := number(from)
		if err != nil {
			return nil, err
		}
		high := low
		if isRange {
			if high, err = number(to); err != nil {
				return nil, err
			}
		}
		if high < low {
			return nil, fmt.Errorf("%s ends before it begins%s", part, hint)
		}
		for n := low; n <= high; n++ {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}
