// Package report assembles figures, tables and notes into one page that people
// read.
//
// The page is a single HTML file without links to other machines or anything to load: it opens
// on a computer without a network, prints, fits a phone, follows a dark screen and works with a
// keyboard and a screen reader. A little script, which the page's own policy allows by its digest,
// sorts and filters tables, picks one of several pictures and tells values; without it all is
// there too. What it shows comes as
// data from [figure]; the package knows no method.
//
// It writes what a run leaves, too: directories of open files that people
// and programs can read without Parley. Each end of a study writes its own: the
// coordinator what everybody in the study may read ([Results]), a site what it alone
// may see ([Site]). A simulation has all of them in one:
//
//	plan.yaml        the effective plan, every default filled in
//	provenance.json  which program, plan and data made the results, and when
//	metrics.json     the method's numbers
//	privacy.json     of a private study, what was promised and what it cost
//	rounds.jsonl     one line for each round: what passed, and how the fit stood
//	model/           the model, in the method's own open files
//	report.html      one page to read, with figures/ beside it
//	sites/NAME/      what that site alone may see, with its report
//
// In a directory of a run that was not finished only the first two, the
// provenance of each site, the checkpoint and the sites' stores exist.
package report

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"parley/figure"
	"parley/internal/files"
)

// Report is a page. Its anchors are section-, figure- or table- and then the
// identifier; figures and tables also have files by that name. Identifiers
// hold a-z, 0-9 and hyphens, and no two of a kind are the same.
type Report struct {
	Title    string
	Subtitle string
	Found    string         // what was found, in a sentence or two; the page opens with it
	Sure     string         // how sure that is, and what it rests on
	Privacy  figure.Warning // what protects the subjects, and where that is explained; may be empty
	Headline []figure.Fact  // what a reader should know first, in a few words each
	Meta     []figure.Fact  // such as the plan's digest, the version, the method
	Sections []figure.Section

	// SitePages are the sites' own pages, by name, where they lie beside this one: paths
	// relative to it, with forward slashes.
	SitePages []figure.Fact

	// Local marks a site's report about its own subjects, for its own people.
	// Only such a report may hold figures with a mark for every subject.
	// Tables are not checked: what they hold is for the caller to answer for.
	Local bool
}

// check returns an error for what cannot be shown.
func (r *Report) check() error {
	used := map[string]string{} // titles by kind and identifier
	claim := func(kind, id, title string) error {
		if !validID(id) {
			return fmt.Errorf("checking report: %s %q has the identifier %q, which should be 1 to 80 of a-z, 0-9 and "+
				"hyphens", kind, title, id)
		}
		if other, taken := used[kind+"-"+id]; taken {
			return fmt.Errorf("checking report: two %ss, %q and %q, have the identifier %q", kind, other, title, id)
		}
		used[kind+"-"+id] = title
		return nil
	}
	for _, s := range r.Sections {
		if err := claim("section", s.ID, s.Title); err != nil {
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

func (r *Report) checkItem(item figure.Item, claim func(kind, id, title string) error) error {
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
			return fmt.Errorf("checking report: figure %q shows single subjects, which only a site's own report may do",
				item.Figure.ID)
		}
		return claim("figure", item.Figure.ID, item.Figure.Title)
	case item.Table != nil:
		return claim("table", item.Table.ID, item.Table.Title)
	}
	return nil
}

// validID reports whether id is safe as an anchor and as a file's name.
func validID(id string) bool {
	return len(id) > 0 && len(id) <= 80 && id[0] != '-' &&
		strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
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
	return p.write(w)
}

// WriteFiles writes the page as report.html into dir, which it makes if need
// be, and beside it figures/<id>.svg and figures/<id>.csv for every figure and
// tables/<id>.csv for every table. Every file appears whole or not at all; the
// page comes last, so that what it names is there. It fails as [Report.HTML]
// does, and where a file cannot be written.
func (r *Report) WriteFiles(dir string) error {
	if err := r.check(); err != nil {
		return err
	}
	p, err := r.page()
	if err != nil {
		return err
	}
	derive := func(folder, name string, data []byte) error {
		return files.Derive(filepath.Join(dir, folder, name), func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	for i, s := range r.Sections {
		for k, item := range s.Items {
			view := &p.Sections[i].Items[k]
			switch {
			case item.Figure != nil:
				if view.svg != nil {
					err = derive("figures", view.ID+".svg", view.svg)
				} else {
					err = files.Derive(filepath.Join(dir, "figures", view.ID+".svg"), item.Figure.SVG)
				}
				if err == nil {
					err = derive("figures", view.ID+".csv", view.csv)
				}
			case item.Table != nil:
				err = derive("tables", view.ID+".csv", view.csv)
			}
			if err != nil {
				return err
			}
		}
	}
	return files.Derive(filepath.Join(dir, "report.html"), p.write)
}
