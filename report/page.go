package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"html/template"
	"io"
	"regexp"
	"strings"

	"parley/figure"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"add":   func(a, b int) int { return a + b },
	"minus": func(s string) string { return negative.ReplaceAllString(s, "$1−$2") },
}).Parse(pageHTML))

// negative is a number behind a hyphen, where tables have a minus sign.
var negative = regexp.MustCompile(`(^|[( ])-([0-9.])`)

// Bounds that keep the page below 1 MB for large studies. Files beside the
// report are complete.
const (
	dataRows   = 30     // of the table behind a figure
	tableRows  = 500    // of a table by itself
	inlineFile = 12_000 // bytes of a file that the page holds for download
	inlineAll  = 80_000 // bytes of all of them
	longTable  = 20     // rows beyond which a long page folds a table away
	foldedAll  = 70_000 // bytes of the pictures that are folded away
)

// page is a report in the form that the template walks over.
type page struct {
	*Report
	CSS      template.CSS
	JS       template.JS
	Policy   string // of what the browser may do for the page
	Verdict  []verdictView
	Sections []sectionView
	Words    []wordView
}

// verdictView is one answer of the page's first lines.
type verdictView struct {
	Question string
	Answers  []template.HTML
	Doubts   []figure.Warning
}

type sectionView struct {
	ID, Title string
	Lead      []template.HTML
	Items     []itemView
}

// itemView is one item, drawn. Pictures are empty for tables, and Data too for notes.
type itemView struct {
	ID, Title   string
	Choice      string
	Caption     template.HTML
	Kind        string // figure, table or note
	Paragraphs  []template.HTML
	Warning     bool
	Pictures    []pictureView // one, or several of a picture that is too long for a page
	Folded      bool          // away, since the page is long
	Cut         bool          // the last pieces are in the figure's file alone
	Terms       []template.HTML
	Data        template.HTML
	Rows, Shown int
	Downloads   []download
	Beside      string // where the files are, if the page does not hold them

	svg, csv []byte // the files beside the page; no picture where the page has it in pieces
}

// pictureView is one picture for wide and one for narrow screens. Pieces after the first have
// the narrow one alone, which stands in two columns where there is room.
type pictureView struct{ Wide, Slim template.HTML }

type download struct {
	Name, Label string
	Href        template.URL
}

// contentPolicy allows what the page holds and nothing else: its own script by its digest.
func contentPolicy(script string) string {
	digest := sha256.Sum256([]byte(script))
	return "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(digest[:]) + "'"
}

func (r *Report) page() (page, error) {
	p := page{Report: r, CSS: template.CSS(pageCSS), JS: template.JS(pageJS), Policy: contentPolicy(pageJS)}
	budget := room{inlineAll, foldedAll}
	w, l := newWords(), newLooks()
	p.Verdict = r.verdict(w)
	long := r.long()
	for _, s := range r.Sections {
		w.section()
		v := sectionView{ID: s.ID, Title: s.Title, Lead: w.texts(paragraphs(s.Lead))}
		for _, item := range s.Items {
			iv, err := viewItem(item, &budget, w, l)
			if err != nil {
				return page{}, err
			}
			iv.Folded = long && (iv.Kind == "table" && iv.Rows > longTable || item.Figure != nil && item.Figure.Detail)
			v.Items = append(v.Items, iv)
		}
		p.Sections = append(p.Sections, v)
	}
	p.Words = w.list()
	p.CSS += template.CSS(l.rules.String()) // of attributes that package figure wrote
	return p, nil
}

// long reports whether a picture of the report is too long for one page, as with many sites:
// then details are folded away.
func (r *Report) long() bool {
	for _, s := range r.Sections {
		for _, item := range s.Items {
			if item.Figure != nil && len(item.Figure.Parts()) > 1 {
				return true
			}
		}
	}
	return false
}

// verdict is what the page opens with: what was found, how sure that is, what speaks against
// relying on it, which the warnings of all sections say, and what protects the subjects.
func (r *Report) verdict(w *words) []verdictView {
	var all []verdictView
	for _, x := range []struct{ question, answer string }{{"What was found", r.Found}, {"How sure that is", r.Sure}} {
		if x.answer != "" {
			all = append(all, verdictView{Question: x.question, Answers: w.texts(paragraphs(x.answer))})
		}
	}
	doubts := verdictView{Question: "What not to trust", Doubts: figure.Warnings(r.Sections)}
	switch {
	case len(doubts.Doubts) > 0:
		all = append(all, doubts)
	case len(all) > 0: // else nothing was said either way
		doubts.Answers = w.texts([]string{"No check of this report speaks against the result. That is no proof that " +
			"it is right: other patients and other hospitals may differ."})
		all = append(all, doubts)
	}
	if r.Privacy.Title != "" {
		all = append(all, verdictView{Question: "What protects the subjects", Doubts: []figure.Warning{r.Privacy}})
	}
	return all
}

func (p page) write(w io.Writer) error {
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// room is what is left of the page for downloads and for folded pictures, in bytes.
type room struct{ files, folded int }

// viewItem draws an item.
func viewItem(item figure.Item, left *room, w *words, l *looks) (itemView, error) {
	if n := item.Note; n != nil {
		return itemView{Kind: "note", Title: n.Title, Paragraphs: w.texts(paragraphs(n.Text)), Warning: n.Warning}, nil
	}
	var v itemView
	var data figure.Table
	limit := tableRows
	if f := item.Figure; f != nil {
		v = itemView{Kind: "figure", ID: f.ID, Title: f.Title, Choice: f.Choice, Caption: w.text(f.Caption)}
		if err := v.draw(f, left, w, l); err != nil {
			return v, err
		}
		data, limit = f.Chart.Table(), dataRows
		v.Beside = "figures/" + f.ID + ".svg"
	} else {
		t := item.Table
		v = itemView{Kind: "table", ID: t.ID, Title: t.Title, Caption: w.text(t.Caption)}
		data = *t
	}
	var csv, rows bytes.Buffer
	if err := data.CSV(&csv); err != nil {
		return v, err
	}
	v.csv = csv.Bytes()
	v.offer(v.ID+".csv", "text/csv", v.csv, &left.files)
	v.Rows = data.Len()
	v.Shown = min(v.Rows, limit)
	data = data.Head(limit)
	data.Title = v.Title
	if err := data.HTML(&rows); err != nil {
		return v, err
	}
	v.Data = template.HTML(rows.String()) // made by html/template
	return v, nil
}

// draw draws a figure at both widths, and links the terms within it that its caption does not.
func (v *itemView) draw(f *figure.Figure, left *room, w *words, l *looks) error {
	var inside []string
	parts := f.Parts()
	for i, part := range parts {
		var wide, slim bytes.Buffer
		if i == 0 {
			if err := part.SVG(&wide); err != nil {
				return err
			}
			if len(parts) == 1 {
				v.svg = wide.Bytes()
			}
		}
		if err := part.SlimSVG(&slim); err != nil {
			return err
		}
		if i > 0 {
			if left.folded -= slim.Len(); left.folded < 0 {
				v.Cut = true
				break
			}
		}
		for _, m := range drawnText.FindAllSubmatch(wide.Bytes(), -1) {
			inside = append(inside, html.UnescapeString(string(m[1])))
		}
		// escaped where they were drawn
		v.Pictures = append(v.Pictures, pictureView{template.HTML(l.compact(wide.String())),
			template.HTML(l.compact(slim.String()))})
	}
	v.Terms = w.also(inside)
	return nil
}

// drawnText is what a picture writes.
var drawnText = regexp.MustCompile(`<text [^>]*>([^<]*)`)

// offer adds a file to download, or says where it is if it is too large.
func (v *itemView) offer(name, media string, content []byte, budget *int) {
	if len(content) > inlineFile || len(content) > *budget {
		v.Beside = strings.TrimPrefix(v.Beside+", "+v.Kind+"s/"+name, ", ")
		return
	}
	*budget -= len(content)
	v.Downloads = append(v.Downloads, download{name, strings.ToUpper(name[strings.LastIndexByte(name, '.')+1:]),
		template.URL(fmt.Sprintf("data:%s;base64,%s", media, base64.StdEncoding.EncodeToString(content)))})
}

// paragraphs parts a text at its empty lines.
func paragraphs(s string) []string {
	var p []string
	for part := range strings.SplitSeq(s, "\n\n") {
		if part = strings.TrimSpace(part); part != "" {
			p = append(p, part)
		}
	}
	return p
}

// looks makes the pictures of a page smaller: what elements look like, which a picture that
// stands alone says at each of them, becomes a class that all pictures of the page share.
type looks struct {
	class map[string]string // by the attributes that it stands for
	rules strings.Builder
}

func newLooks() *looks { return &looks{class: map[string]string{}} }

// lookUnit are the attributes that say how an element looks, with the unit that each has in a style.
var lookUnit = map[string]string{
	"fill": "", "fill-opacity": "", "fill-rule": "", "stroke": "", "stroke-width": "", "stroke-opacity": "",
	"stroke-dasharray": "", "stroke-linecap": "", "stroke-linejoin": "", "shape-rendering": "", "font-size": "px",
	"font-weight": "", "text-anchor": "", "pointer-events": "",
}

// compact returns a picture with classes. Pictures are those of package figure: elements without spaces
// around =, attributes in double quotes, and no < or > within these.
func (l *looks) compact(svg string) string {
	head := strings.Index(svg, "<rect") + 1 // the paper keeps its own
	var out, kept, rule strings.Builder
	out.WriteString(svg[:head])
	for rest := svg[head:]; ; {
		text, tag, opens := strings.Cut(rest, "<")
		out.WriteString(text)
		if !opens {
			return out.String()
		}
		end := strings.IndexByte(tag, '>')
		tag, rest = tag[:end], tag[end:]
		kind, attributes, _ := strings.Cut(tag, " ")
		kept.Reset()
		rule.Reset()
		for attributes != "" {
			name, value, ok := strings.Cut(attributes, `="`)
			if !ok { // the end of an element without content
				kept.WriteString(attributes)
				break
			}
			quote := strings.IndexByte(value, '"')
			if unit, looks := lookUnit[name]; looks {
				rule.WriteString(name + ":" + value[:quote] + unit + ";")
			} else {
				kept.WriteString(" " + attributes[:len(name)+2+quote+1])
			}
			attributes = strings.TrimPrefix(value[quote+1:], " ")
		}
		out.WriteString("<" + kind)
		if rule.Len() > 0 {
			out.WriteString(` class="` + l.named(rule.String()) + `"`)
		}
		out.WriteString(kept.String())
	}
}

// named returns the class of a look.
func (l *looks) named(rule string) string {
	name, ok := l.class[rule]
	if !ok {
		name = fmt.Sprintf("l%d", len(l.class)+1)
		l.class[rule] = name
		fmt.Fprintf(&l.rules, ".%s{%s}\n", name, rule)
	}
	return name
}
