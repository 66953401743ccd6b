package dataset

import (
	"cmp"
	"context"
	"slices"
)

// ColumnProfile says what the cells of one column look like, before anybody has said
// what they mean. It is exact, so it belongs to the site and is not for release.
type ColumnProfile struct {
	View    string // "" for a column of the subjects table
	Name    string
	Numbers int64
	Missing int64
	Commas  int64 // words that are numbers with a decimal comma
	// Words are the cells that are neither, of a column of the subjects table all that are
	// not missing, in ascending order; nil if there are more than MaxLevels.
	Words []Level
	Many  bool
}

// Profile reads every cell of the data set as text. The columns come in the order of
// the data set's schema, those of the subjects table first.
func (d *Dir) Profile(ctx context.Context) ([]ColumnProfile, error) {
	var all []*profiler
	places := map[[2]string]*profiler{}
	add := func(view, name string) {
		p := &profiler{ColumnProfile: ColumnProfile{View: view, Name: name}, words: map[string]int64{}}
		all, places[[2]string{view, name}] = append(all, p), p
	}
	for _, c := range d.schema.Subject {
		add("", c.Name)
	}
	for _, v := range d.schema.Views {
		for _, c := range v.Columns {
			add(v.Name, c.Name)
		}
	}
	views := map[*table]string{}
	for _, v := range d.views {
		views[v.table] = v.name
	}
	var wrong []*faults
	for _, t := range d.tables() {
		f := &faults{path: t.in.path}
		wrong = append(wrong, f)
		if err := d.profile(ctx, t, f, func(row []field) {
			if t == d.long {
				if p := places[[2]string{string(row[1].text), string(row[2].text)}]; p != nil {
					p.look(row[3].text)
				}
				return
			}
			for i, h := range t.header[1:] {
				places[[2]string{views[t], h.name}].look(row[i+1].text)
			}
		}); err != nil {
			return nil, err
		}
	}
	if err := gather(wrong); err != nil {
		return nil, err
	}
	profiles := make([]ColumnProfile, len(all))
	for i, p := range all {
		profiles[i] = p.profile()
	}
	return profiles, nil
}

// profile hands the cells of every row of a table to look.
func (d *Dir) profile(ctx context.Context, t *table, f *faults, look func([]field)) error {
	w, err := t.walk(ctx, f, max(d.memory, 1<<20))
	if err != nil {
		return err
	}
	defer w.Close()
	w.many = t == d.long
	for n := 0; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if more, err := w.advance(); !more {
			return err
		}
		if row, ok := w.fields(); ok {
			look(row)
		}
	}
}

type profiler struct {
	ColumnProfile
	words map[string]int64 // nil: too many
}

func (p *profiler) look(cell []byte) {
	if isMissing(cell) {
		p.Missing++
		return
	}
	if _, number := parseNumber(cell); number {
		if p.Numbers++; p.View != "" {
			return
		}
	} else if decimalComma.Match(cell) {
		p.Commas++
	}
	if p.words != nil {
		if p.words[string(cell)]++; len(p.words) > MaxLevels {
			p.words = nil
		}
	}
}

func (p *profiler) profile() ColumnProfile {
	p.Many = p.words == nil
	for name, n := range p.words {
		p.Words = append(p.Words, Level{name, n})
	}
	slices.SortFunc(p.Words, func(a, b Level) int { return cmp.Compare(a.Name, b.Name) })
	return p.ColumnProfile
}
