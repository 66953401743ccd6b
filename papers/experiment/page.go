package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"parley/figure"
	"parley/internal/files"
)

// Paper is what a page of the documentation is about.
type Paper struct {
	Name  string // of its page and its experiments: fedmvppca
	Title string // of the page
	Lead  string // what is repeated, on which data, and what is not
	texts map[string]*Text
}

// Text is what a page says of an experiment: Markdown, whose links lead from there.
type Text struct {
	Item    string   // as the paper counts: Table 6
	About   string   // what is measured, and on which data, in a sentence or two
	Finding string   // what came out, in a line; or empty
	Notes   []string // where ours differ from what was published, and why
}

// ReadPaper reads what is written by hand of a page, a paragraph a line: title and lead; words in brackets
// with what stands for each; and after a heading of name and item the [Text] of every experiment, its
// finding after "Found: ".
func ReadPaper(name, page string) Paper {
	p := Paper{Name: name, texts: map[string]*Text{}}
	var of *Text
	var words []string
	for line := range strings.SplitSeq(strings.TrimSpace(page), "\n\n") {
		kind, rest, _ := strings.Cut(line, " ")
		line = strings.NewReplacer(words...).Replace(line)
		switch {
		case kind == "#":
			p.Title = rest
		case strings.HasPrefix(kind, "[") && strings.HasSuffix(kind, "]:"):
			words = append(words, strings.TrimSuffix(kind, ":"), rest)
		case kind == "##":
			name, item, _ := strings.Cut(rest, ": ")
			of = &Text{Item: item}
			p.texts[name] = of
		case of == nil:
			p.Lead = line
		case of.About == "":
			of.About = line
		case kind == "Found:":
			of.Finding = rest
		default:
			of.Notes = append(of.Notes, line)
		}
	}
	return p
}

// Tell gives experiments the texts of the page, which has one of each.
func (p Paper) Tell(all List) List {
	for i, x := range all {
		if p.texts[x.Name] == nil {
			panic("the page of " + p.Name + " has no section on " + x.Name)
		}
		all[i].Paper, all[i].Text = p.Name, *p.texts[x.Name]
	}
	return all
}

// WritePages writes the documentation of papers into a folder: for each a page NAME.md,
// with pictures in images/, from the records of the folder's records/. Experiments
// without a record are named as not run. The pages are a function of the records.
func WritePages(dir string, papers []Paper, all List) error {
	for _, p := range papers {
		var page bytes.Buffer
		fmt.Fprintf(&page, "# %s\n\n%s\n", p.Title, p.Lead)
		contents(&page, p, all)
		for _, x := range all {
			if x.Paper != p.Name {
				continue
			}
			r, err := keptIn(dir, x.Name)
			if err != nil && !os.IsNotExist(err) {
				return err
			}
			if err := section(&page, dir, x, r); err != nil {
				return err
			}
		}
		if err := files.Write(filepath.Join(dir, p.Name+".md"), page.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// Keep puts a record where [WritePages] finds it.
func Keep(dir string, r *Record) error {
	return files.WriteJSON(filepath.Join(dir, "records", r.Experiment+".json"), r)
}

// keptIn reads the record that [Keep] put into a folder; [os.ErrNotExist] if there is none.
func keptIn(dir, name string) (*Record, error) {
	return readJSON(filepath.Join(dir, "records", name+".json"))
}

// Markdown is the record's tables as its page has them.
func (r *Record) Markdown() string {
	var b bytes.Buffer
	for _, t := range r.AllTables() {
		markdown(&b, t)
	}
	return b.String()
}

// contents writes what is found where. Marks hold the numbers to the record.
func contents(w *bytes.Buffer, p Paper, all List) {
	for _, x := range all {
		if x.Paper == p.Name && x.Finding != "" {
			fmt.Fprintf(w, "\n<!-- quoted: go run -C papers . run %s -->\n- [%s](#%s): %s\n", x.Name, x.Item,
				anchor(x.Item), x.Finding)
		}
	}
}

// anchor is what a link to a heading of letters, digits, spaces and punctuation names it.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ' || r == '-':
			return '-'
		case unicode.IsLetter(r) || unicode.IsNumber(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

// section writes what came of one experiment, and its pictures beside the page.
func section(w *bytes.Buffer, dir string, x Experiment, r *Record) error {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n", x.Item, x.About)
	if r == nil {
		fmt.Fprintf(w, "Not run yet: `go run -C papers . run %s`.\n", x.Name)
		return nil
	}
	older, err := r.Older(x)
	if err != nil {
		return err
	}
	since := ""
	if len(older) > 0 {
		since = fmt.Sprintf(" Since then %s changed, and a new run may have other numbers.",
			strings.Join(older, " and "))
	}
	fmt.Fprintf(w, "`go run -C papers . run %s`: %s, %s, version %s.%s\n", x.Name,
		figure.Plural(r.Cells, "computation"), r.Took(), r.Version, since)
	for _, n := range x.Notes {
		fmt.Fprintf(w, "\n%s\n", n)
	}
	for _, b := range r.Broken {
		fmt.Fprintf(w, "\n**A promise is broken.** %s.\n", b)
	}
	w.WriteString(r.Markdown())
	for _, f := range r.Figures {
		var svg bytes.Buffer
		if err := f.SVG(&svg); err != nil {
			return err
		}
		name := filepath.Join("images", x.Name+"-"+f.ID+".svg")
		if err := files.Write(filepath.Join(dir, name), svg.Bytes()); err != nil {
			return err
		}
		fmt.Fprintf(w, "\n![%s](%s)\n\n%s\n", f.Alt, filepath.ToSlash(name), f.Caption)
	}
	return nil
}

// unfolded is how many lines of a table a page shows before the reader asks for them.
const unfolded = 24

// markdown writes a table. A long one is folded, so that a page can be read from its top to its end.
func markdown(w *bytes.Buffer, t figure.Table) {
	if t.Title != "" {
		fmt.Fprintf(w, "\n**%s.** %s\n\n", t.Title, t.Caption)
	}
	if t.Len() > unfolded {
		fmt.Fprintf(w, "<details><summary>All %d lines</summary>\n\n", t.Len())
		defer fmt.Fprintln(w, "\n</details>")
	}
	rule := "|"
	fmt.Fprint(w, "|")
	for _, c := range t.Columns {
		fmt.Fprintf(w, " %s |", c.Name)
		if len(c.Numbers) > 0 {
			rule += "---:|"
		} else {
			rule += "---|"
		}
	}
	fmt.Fprintf(w, "\n%s\n", rule)
	for i := range t.Len() {
		fmt.Fprint(w, "|")
		for _, c := range t.Columns {
			text := ""
			switch {
			case i < len(c.Text):
				text = c.Text[i]
			case i < len(c.Numbers):
				text = Minus(fmt.Sprintf("%.4g", c.Numbers[i]))
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
}

// pages is where the documentation of papers lies in the repository.
const pages = "docs/experiments"

var (
	link     = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	emphasis = regexp.MustCompile(`\*+([^*\s](?:[^*]*[^*\s])?)\*+`)
)

// Plain is a note without the marks of Markdown. A link says in brackets which file of the
// repository it leads to.
func Plain(note string) string {
	note = link.ReplaceAllStringFunc(note, func(found string) string {
		m := link.FindStringSubmatch(found)
		to := m[2]
		if !strings.Contains(to, "://") {
			to = path.Join(pages, to)
		}
		return fmt.Sprintf("%s (%s)", m[1], to)
	})
	return emphasis.ReplaceAllString(note, "$1")
}
