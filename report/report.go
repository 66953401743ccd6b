// Package report assembles figures, tables and notes into one page that people
// read.
//
// The page is a single HTML file without scripts, links to other machines or
// anything to load: it opens on a computer without a network, prints, fits a
// phone and works with a keyboard and a screen reader. What it shows comes as
// data from [figure]; the package knows no method.
package report

import (
	"fmt"
	"io"
	"strings"

	"parley/figure"
)

// Report is a page. Identifiers of sections, figures and tables are its
// anchors and, for figures and tables, the names of files; they hold a-z, 0-9
// and hyphens, and no two are the same.
type Report struct {
	Title    string
	Subtitle string
	Meta     []Fact // such as the plan's digest, the version, the sites
	Sections []figure.Section

	// Local marks a site's report about its own subjects, for its own people.
	// Only such a report may hold figures with a mark for every subject.
	// Tables are not checked: what they hold is for the caller to answer for.
	Local bool
}

// Fact is a name and its value in the head of a report.
type Fact struct{ Name, Value string }

// check returns an error for what cannot be shown.
func (r *Report) check() error {
	used := map[string]string{"top": "the page", "contents": "the page"}
	claim := func(id, owner string) error {
		if !validID(id) {
			return fmt.Errorf("checking report: %s has the identifier %q, which should hold only a-z, 0-9 and hyphens, and at most 80 of them", owner, id)
		}
		if other, taken := used[id]; taken {
			return fmt.Errorf("checking report: %s has the identifier %q, which %s already has", owner, id, other)
		}
		used[id] = owner
		return nil
	}
	for _, s := range r.Sections {
		if err := claim(s.ID, fmt.Sprintf("section %q", s.Title)); err != nil {
			return err
		}
		for i, item := range s.Items {
			if err := r.checkItem(item, claim); err != nil {
				return fmt.Errorf("%w (section %q, item %d)", err, s.ID, i+1)
			}
		}
	}
	return nil
}

func (r *Report) checkItem(item figure.Item, claim func(id, owner string) error) error {
	kinds := 0
	for _, set := range []bool{item.Figure != nil, item.Table != nil, item.Note != nil} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("checking report: an item holds %d things, which should be one figure, table or note", kinds)
	}
	switch {
	case item.Figure != nil:
		if item.Figure.Chart == nil {
			return fmt.Errorf("checking report: figure %q has no chart", item.Figure.ID)
		}
		if item.Figure.PerSubject() && !r.Local {
			return fmt.Errorf("checking report: figure %q shows single subjects, which only a site's own report may do", item.Figure.ID)
		}
		return claim(item.Figure.ID, fmt.Sprintf("figure %q", item.Figure.Title))
	case item.Table != nil:
		return claim(item.Table.ID, fmt.Sprintf("table %q", item.Table.Title))
	}
	return nil
}

// validID reports whether id is safe as an anchor and as a file's name.
func validID(id string) bool {
	return len(id) > 0 && len(id) <= 80 && id[0] != '-' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// HTML writes the page. An identifier that is not valid or not unique, an item
// that is not exactly one thing, and a figure of single subjects in a report
// that is not Local are errors, found before anything is written.
func (r *Report) HTML(w io.Writer) error {
	if err := r.check(); err != nil {
		return err
	}
	p, err := r.page()
	if err != nil {
		return err
	}
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}
