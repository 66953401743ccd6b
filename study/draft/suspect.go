package draft

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// schema is that of the draft.
func (d *Draft) schema() dataset.Schema {
	p := study.Plan{Subjects: d.Subjects}
	for _, code := range d.Missing {
		p.Missing = append(p.Missing, study.Code(code))
	}
	for _, v := range d.Views {
		p.Views = append(p.Views, study.View{Name: v.Name, Features: v.Features})
	}
	return p.Schema()
}

// suspect reads the data as the draft describes them, twice: it adds codes that look as
// if they stood for missing values, and then leaves out what says nothing.
func (d *Draft) suspect(ctx context.Context) error {
	for k := range d.Views {
		for j := range d.Views[k].Features {
			d.Views[k].Features[j].Missing = nil
		}
	}
	if len(d.Views) == 0 {
		return nil
	}
	if err := d.describe(ctx, func(k, j int, f *dataset.FeatureSummary) {
		own := &d.Views[k].Features[j]
		for _, code := range f.Codes() {
			if own.Kind == study.Number && !slices.Contains(own.Missing, study.Code(code)) {
				own.Missing = append(own.Missing, study.Code(code))
			}
		}
	}); err != nil {
		return err
	}
	spans, within := map[string]*dataset.Moments{}, map[string]bool{} // of all sites, and whether it varies at one
	categories := map[string]map[string]bool{}
	d.mayBeKinds = map[string]bool{}
	for i := range d.Sites {
		d.Sites[i].Lacks = []string{}
	}
	unmeant := map[string]string{} // features that are no measurements, with why
	if err := d.describe(ctx, func(k, j int, f *dataset.FeatureSummary) {
		switch {
		case f.Counting(f.Name):
			unmeant[f.Name] = "it numbers the rows"
		case f.Days(f.Name):
			unmeant[f.Name] = holdsDates
		}
		if m := f.Moments; m != nil {
			within[f.Name] = within[f.Name] || m.Min < m.Max
			before, known := d.mayBeKinds[f.Name]
			d.mayBeKinds[f.Name] = f.FewWhole(d.Outcome == nil) && (before || !known)
			if all := spans[f.Name]; all == nil {
				spans[f.Name] = &dataset.Moments{Min: m.Min, Max: m.Max}
			} else {
				all.Min, all.Max = min(all.Min, m.Min), max(all.Max, m.Max)
			}
		}
		for _, l := range f.Levels {
			if l.Subjects > 0 {
				if categories[f.Name] == nil {
					categories[f.Name] = map[string]bool{}
				}
				categories[f.Name][l.Name] = true
			}
		}
	}); err != nil {
		return err
	}
	used := map[study.Code]int{} // of how many features
	for _, v := range d.Views {
		for _, f := range v.Features {
			for _, c := range f.Missing {
				if _, far := apart(c, spans[f.Name]); far {
					used[c]++
				}
			}
		}
	}
	for k := range d.Views {
		v := &d.Views[k]
		for j := range v.Features {
			f := &v.Features[j]
			f.Missing = slices.DeleteFunc(f.Missing, func(c study.Code) bool {
				beyond, far := apart(c, spans[f.Name])
				return !far && !(used[c] > 1 && beyond)
			})
		}
		v.Features = slices.DeleteFunc(v.Features, func(f study.Feature) bool {
			span := spans[f.Name]
			varies := span != nil && span.Min < span.Max || len(categories[f.Name]) > 1
			why := unmeant[f.Name]
			if !varies {
				why = "it is the same for everybody, or has no value"
			} else if span != nil && !within[f.Name] {
				why = "it is the same for everybody at a site, so that it says at which somebody is"
			}
			if why != "" {
				d.LeftOut = append(d.LeftOut, leftOut{v.Name, f.Name, why})
			}
			return why != ""
		})
	}
	d.Views = slices.DeleteFunc(d.Views, func(v view) bool { return len(v.Features) == 0 })
	for i := range d.Sites {
		d.Sites[i].Lacks = slices.DeleteFunc(d.Sites[i].Lacks, func(name string) bool {
			return !slices.ContainsFunc(d.Views, func(v view) bool { return v.Name == name })
		})
	}
	return nil
}

// apart says whether a code of one site is beyond the values of all sites together, which is enough where other
// features have the same code, and whether far beyond, as [dataset.FeatureSummary.Codes] asks of a single one.
func apart(code study.Code, all *dataset.Moments) (beyond, far bool) {
	v, err := strconv.ParseFloat(string(code), 64)
	if err != nil || all == nil {
		return false, false
	}
	off := max(all.Min-v, v-all.Max)
	return off > 0, v < 0 && all.Min >= 0 || off > all.Max-all.Min
}

// describe reads all sites and hands over what each has of each feature.
func (d *Draft) describe(ctx context.Context, look func(k, j int, f *dataset.FeatureSummary)) error {
	schema := d.schema()
	for i := range d.Sites {
		s := &d.Sites[i]
		dir, err := dataset.Open(ctx, s.Folder, dataset.Options{Schema: &schema})
		if err != nil {
			return err
		}
		summary, err := dataset.Describe(ctx, dir)
		if list := (problem.List)(nil); err != nil && !errors.As(err, &list) {
			return fmt.Errorf("%s: %w", s.Folder, err)
		} else if err != nil {
			return err
		}
		s.Subjects, s.Lacks, s.census = summary.Subjects, []string{}, summary.Census
		for k, v := range summary.Views {
			if v.Subjects == 0 {
				s.Lacks = append(s.Lacks, v.Name)
			}
			for j := range v.Features {
				look(k, j, &v.Features[j])
			}
		}
	}
	return nil
}

// sameRows are sites that hold the same subjects with the same values: a folder and its copy.
func (d *Draft) sameRows() (wrong problem.List) {
	for i, a := range d.Sites {
		for _, b := range d.Sites[i+1:] {
			if a.census != nil && b.census != nil && a.census.Fingerprint == b.census.Fingerprint {
				wrong.Add(problem.Problem{File: b.Folder,
					What: fmt.Sprintf("holds the same rows as %s, so that each subject would count twice", a.Folder),
					Hint: "move one of the two elsewhere"})
			}
		}
	}
	return wrong
}

// settle ends the draft: how many factors, and why this method.
func (d *Draft) settle() problem.List {
	features := 0
	for _, v := range d.Views {
		features += len(v.Features)
	}
	if d.Outcome != nil {
		d.Reason = fmt.Sprintf("%s is to be predicted from %s: a regression", d.Outcome.Column,
			plural(features, "feature"))
		d.enough()
		d.followUp()
		d.spread()
		return nil
	}
	if features < 2 {
		return problem.List{{What: fmt.Sprintf("factors need at least 2 columns of numbers that vary, and there is %d",
			features),
			Hint: strings.Join(append(d.Omitted(), "name an outcome with --outcome, or mend the data"), "\n")}}
	}
	whose := map[bool]string{false: "the views", true: "they"}[len(d.Views) == 1]
	d.Reason = fmt.Sprintf("%s in %s and no outcome: factors that %s share", plural(features, "number"),
		plural(len(d.Views), "view"), whose)
	d.spread()
	return nil
}

// spread puts simulated sites in the place of one data set.
func (d *Draft) spread() {
	if d.Data == "" {
		return
	}
	d.Sites = nil
	for i := range simulated {
		d.Sites = append(d.Sites, site{Name: fmt.Sprintf("site-%d", i+1), Lacks: []string{}})
	}
}

// perWeight is how many events, or rows for a number, a regression without a prior should
// have for each of its weights (Peduzzi et al. 1996).
const perWeight = 10

// enough says whether the subjects are few for the weights of a regression. Without some
// prior there is no fit where weights outnumber events; with one, the prior decides most.
func (d *Draft) enough() {
	weights, what := 0, "values of "+d.Outcome.Column
	for _, v := range d.Views {
		for _, f := range v.Features {
			if weights++; f.Kind == study.Category {
				weights += len(f.Levels) - 2
			}
		}
	}
	c := d.subject(d.Outcome.Column)
	events := c.Numbers
	for i, l := range d.Outcome.Levels {
		if n := c.words[l]; i == 0 || n < events {
			events, what = n, fmt.Sprintf("events (%s: %s)", d.Outcome.Column, l)
		}
	}
	if events >= perWeight*int64(weights) {
		return
	}
	most := max(1, events/perWeight)
	advice := fmt.Sprintf("keep at most %s, chosen without looking at the outcome", plural(most, "feature"))
	d.tooFew = fmt.Sprintf("Few data: at most %d %s for %s. The usual rule is %d for each.\n"+
		"The prior keeps the weights finite, and decides much of the result: single effects are uncertain.\n"+
		"Better: %s,\nor begin without an outcome: name: factors finds patterns.", (events+9)/10*10, oneLine(what),
		plural(weights, "weight"), perWeight, advice)
	d.Said = append(problem.List{{Where: "--outcome " + d.Outcome.Column,
		What: fmt.Sprintf("there are %d %s for %s, which is few: the usual rule is %d for each; the prior keeps the "+
			"weights finite, and decides much of the result", events, what, plural(weights, "weight"), perWeight),
		Hint: advice + "\nor begin without --outcome: name: factors finds patterns first"}}, d.Said...)
}

// Parts of names of columns that are the time until an event, and of those that say how it ended.
var (
	times = []string{"time", "day", "week", "month", "year", "follow", "surviv", "duration", "until", "pfs", "tte"}
	ends  = []string{"event", "status", "death", "died", "dead", "deceas", "surviv", "censor", "relaps", "recur",
		"progress"}
)

// followUp says so if a number that is to be predicted looks like the time until an event, which
// not everybody had: a regression of such times takes the others' for times of the event.
func (d *Draft) followUp() {
	named := func(column string, parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool {
			return strings.Contains(strings.ToLower(column), part)
		})
	}
	if len(d.Outcome.Levels) > 0 || !named(d.Outcome.Column, times) {
		return
	}
	for _, c := range d.Candidates {
		if len(c.Levels) < 2 || !named(c.Column, ends) {
			continue
		}
		levels := slices.Clone(c.Levels)
		if named(c.Column, []string{"censor"}) {
			slices.Reverse(levels)
		}
		also := ""
		if len(levels) > 2 {
			levels, also = []string{"NO EVENT", "EVENT"},
				fmt.Sprintf("\nof %d ways that the time ended, one is the event; write the others as no event, or let "+
					"levels in mapping.yaml do so", len(c.Levels))
		}
		d.survival = fmt.Sprintf("outcome: {column: %s, event: %s, levels: %s, cuts: [END OF EACH PERIOD]}",
			study.Quote(d.Outcome.Column), study.Quote(c.Column), flow(levels, study.Quote))
		d.Said = append(problem.List{{Where: "--outcome " + d.Outcome.Column,
			What: fmt.Sprintf("if %s says how each %s ended, a plain regression of %s is wrong: the event had not "+
				"come for everybody", c.Column, d.Outcome.Column, d.Outcome.Column),
			Hint: "in the plan, with no event before the event among the levels: " + d.survival + also}}, d.Said...)
		return
	}
}
