package local

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/dataset"
	"parley/problem"
	"parley/study"
)

// view is what the sites together show of their data, before anything is fitted.
type view struct {
	together dataset.Others
	lacks    map[string][]string    // views, by site
	apart    map[string][][2]string // pairs of views that no subject of a site has both of
}

// look reads every site once, for what only all sites together can show: a
// feature that is constant everywhere is an error, at one site a note; so is a
// pair of views that nobody has both of.
func (b *Binding) look(ctx context.Context, p *study.Plan) error {
	seen := view{lacks: map[string][]string{}, apart: map[string][][2]string{}}
	var wrong problem.List
	for _, site := range p.Sites {
		s, err := dataset.Describe(ctx, b.Data[site])
		if list := (problem.List)(nil); errors.As(err, &list) {
			wrong = append(wrong, list...)
			continue
		}
		if err != nil {
			return fmt.Errorf("site %s: %w", site, err)
		}
		if b.cost != nil {
			s.Worth = b.cost.Worth()
		}
		b.Summaries[site] = s
		seen.together.Sites = append(seen.together.Sites, site)
		seen.together.Summaries = append(seen.together.Summaries, s)
		seen.apart[site] = s.Apart()
		for _, v := range s.Views {
			if v.Subjects == 0 {
				seen.lacks[site] = append(seen.lacks[site], v.Name)
				b.Notes.Add(problem.Problem{Where: "site " + site, What: "lacks the view " + v.Name,
					Hint: "if it has it, the file is missing or named differently"})
			}
		}
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	b.Notes = append(b.Notes, seen.doubts(!p.Privacy.Differential())...)
	b.Notes = append(b.Notes, seen.together.Doubts()...)
	for k, v := range p.Views {
		wrong = append(wrong, seen.useless(k, v)...)
	}
	if err := wrong.Err(); err != nil {
		return err
	}
	b.Notes = append(b.Notes, seen.poor(p)...)
	b.Notes = append(b.Notes, study.Unshared(p, seen.lacks, seen.apart)...)
	return nil
}

// counts are numbers in a sentence, which may differ between sites that it holds of.
var counts = regexp.MustCompile(`\b[0-9][0-9.e+]*\b`)

// doubts returns what single sites' data show, and says once what holds at several.
func (v *view) doubts(exact bool) (notes problem.List) {
	type said struct {
		problem.Problem
		sites []string
		alike bool
	}
	var all []*said
	for i, s := range v.together.Summaries {
		doubts := append(s.Doubts(), s.Shapes()...)
		if exact {
			doubts = append(doubts, s.SmallCells()...)
		}
		for _, doubt := range doubts {
			at := slices.IndexFunc(all, func(d *said) bool {
				return d.Where == doubt.Where && d.Hint == doubt.Hint &&
					counts.ReplaceAllString(d.What, "") == counts.ReplaceAllString(doubt.What, "")
			})
			if at < 0 {
				at, all = len(all), append(all, &said{Problem: doubt, alike: true})
			}
			all[at].sites = append(all[at].sites, v.together.Sites[i])
			all[at].alike = all[at].alike && all[at].What == doubt.What
		}
	}
	for _, d := range all {
		note := d.Problem
		switch {
		case len(d.sites) == 1:
			note.Where = "site " + d.sites[0] + ", " + d.Where
		case len(d.sites) == len(v.together.Sites):
			note.Where = "all sites, " + d.Where
		default:
			note.Where = "sites " + problem.Names(d.sites) + ", " + d.Where
		}
		if !d.alike {
			note.What += "; these are the numbers of " + d.sites[0]
		}
		notes.Add(note)
	}
	return notes
}

// useless returns the numbers of a view that say nothing anywhere: those without a value, and
// those with the same value at every subject.
func (v *view) useless(k int, of study.View) (wrong problem.List) {
	for j, f := range of.Features {
		if f.Kind != study.Number {
			continue
		}
		var low, high float64
		var observed int64
		for _, s := range v.together.Summaries {
			m := s.Views[k].Features[j].Moments
			if m == nil {
				continue
			}
			if observed == 0 {
				low, high = m.Min, m.Max
			}
			low, high, observed = min(low, m.Min), max(high, m.Max), observed+s.Views[k].Features[j].Observed
		}
		p := problem.Problem{Where: "view " + of.Name + ", feature " + f.Name, Hint: "leave it out of the plan"}
		switch {
		case observed == 0:
			p.What = "no site has a single value of it"
		case low < high:
			continue
		case observed < dataset.SmallCell: // whose value it is would be told
			p.What = fmt.Sprintf("it has a value at %d subjects only, and it is the same", observed)
		default:
			p.What = fmt.Sprintf("it is %v for every subject of every site", low)
		}
		wrong.Add(p)
	}
	return wrong
}

// poor notes the features that have no value, or only one, at some of the sites that have their view, and an outcome
// that has one. It says once what holds for several at the same.
func (v *view) poor(p *study.Plan) (notes problem.List) {
	type same struct{ where, does, sites string }
	names, order, all := map[same][]string{}, []same(nil), v.together.Summaries
	look := func(where, name string, does func(*dataset.Summary) string) {
		at := map[string][]string{} // sites
		for i, s := range all {
			at[does(s)] = append(at[does(s)], v.together.Sites[i])
		}
		for _, what := range []string{"has no value", "does not vary"} {
			key := same{where, what, problem.Names(at[what])}
			if len(at[what]) == 0 {
				continue
			}
			if names[key] == nil {
				order = append(order, key)
			}
			names[key] = append(names[key], name)
		}
	}
	for k, view := range all[0].Views {
		for j, f := range view.Features {
			look("view "+view.Name+", feature", f.Name, func(s *dataset.Summary) string {
				own := s.Views[k].Features[j]
				switch m := own.Moments; {
				case s.Views[k].Subjects > 0 && own.Observed == 0:
					return "has no value"
				case m != nil && m.Min == m.Max && s.Views[k].Subjects > 1: // one varies in nothing
					return "does not vary"
				}
				return ""
			})
		}
	}
	fit, _ := p.Method.Options.(interface{ Predicts(column string) bool })
	for k, c := range all[0].Columns {
		if fit != nil && fit.Predicts(c.Name) {
			look("subjects, column", c.Name, func(s *dataset.Summary) string {
				own := slices.DeleteFunc(slices.Clone(s.Columns[k].Levels), func(l dataset.Level) bool {
					return dataset.IsMissing(l.Name)
				})
				return map[bool]string{true: "does not vary"}[len(own) == 1 && own[0].Subjects > 1]
			})
		}
	}
	for _, key := range order {
		p := problem.Problem{Where: key.where + " " + names[key][0], What: "it " + key.does + " at " + key.sites}
		if len(names[key]) > 1 {
			p.Where = key.where + "s " + problem.Names(names[key])
			p.What = strings.NewReplacer("it has", "they have", "it does", "they do").Replace(p.What)
		}
		notes.Add(p)
	}
	return notes
}
