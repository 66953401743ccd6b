package report

import (
	"bytes"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"

	"parley/figure"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// Bounds that keep the page below 3 MB for large studies. Files beside the
// report are complete.
const (
	dataRows   = 60      // of the table behind a figure
	tableRows  = 500     // of a table by itself
	inlineFile = 24_000  // bytes of a file that the page holds for download
	inlineAll  = 600_000 // bytes of all of them
)

// page is a report in the form that the template walks over.
type page struct {
	*Report
	CSS      template.CSS
	Sections []sectionView
}

type sectionView struct {
	ID, Title string
	Lead      []string
	Items     []itemView
}

// itemView is one item, drawn. SVG is empty for tables, both SVG and Data for
// notes.
type itemView struct {
	ID, Title, Caption string
	Kind               string // figure, table or note
	Paragraphs         []string
	Warning            bool
	SVG, Data          template.HTML
	Rows, Shown        int
	Downloads          []download
	Beside             string // where the files are, if the page does not hold them
}

type download struct {
	Name, Label string
	Href        template.URL
}

func (r *Report) page() (page, error) {
	p := page{Report: r, CSS: template.CSS(pageCSS)}
	budget := inlineAll
	for _, s := range r.Sections {
		v := sectionView{ID: s.ID, Title: s.Title, Lead: paragraphs(s.Lead)}
		for _, item := range s.Items {
			iv, err := viewItem(item, &budget)
			if err != nil {
				return page{}, err
			}
			v.Items = append(v.Items, iv)
		}
		p.Sections = append(p.Sections, v)
	}
	return p, nil
}

func (p page) write(w io.Writer) error {
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing report: %w", err)
	}
	return nil
}

// viewItem draws an item. budget is what is left for downloads.
func viewItem(item figure.Item, budget *int) (itemView, error) {
	if n := item.Note; n != nil {
		return itemView{Kind: "note", Title: n.Title, Paragraphs: paragraphs(n.Text), Warning: n.Warning}, nil
	}
	var v itemView
	var data figure.Table
	limit := tableRows
	if f := item.Figure; f != nil {
		v = itemView{Kind: "figure", ID: f.ID, Title: f.Title, Caption: f.Caption}
		var svg bytes.Buffer
		if err := f.SVG(&svg); err != nil {
			return v, err
		}
		v.SVG = template.HTML(svg.String()) // escaped where it was drawn
		v.offer(f.ID+".svg", "image/svg+xml", svg.Bytes(), budget)
		data, limit = f.Chart.Table(), dataRows
	} else {
		t := item.Table
		v = itemView{Kind: "table", ID: t.ID, Title: t.Title, Caption: t.Caption}
		data = *t
	}
	var csv, rows bytes.Buffer
	if err := data.CSV(&csv); err != nil {
		return v, err
	}
	v.offer(v.ID+".csv", "text/csv", csv.Bytes(), budget)
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
