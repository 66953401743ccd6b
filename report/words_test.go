package report_test

import (
	"strings"
	"testing"

	"parley/figure"
	"parley/internal/testkit"
	"parley/report"
)

// A page opens with its verdict, and a term leads to its meaning: once in a section, also from
// within a picture, and never from within another word or a file's name.
func TestVerdictAndTerms(t *testing.T) {
	r := &report.Report{Found: "Two factors were found.", Sure: "Intervals of 90 % held 91 %.",
		Privacy: figure.Warning{Title: "Nothing does", Section: "s"},
		Sections: []figure.Section{{ID: "s", Title: "S",
			Lead: "Of factors, one factor; by a factor of 3; the refactor and scores.csv.",
			Items: []figure.Item{
				{Note: &figure.Note{Title: "Too wide", Text: "x", Warning: true}},
				{Note: &figure.Note{Title: "Too wide", Text: "y", Warning: true}},
				{Note: &figure.Note{Title: "No warning", Text: "z"}},
				{Figure: &figure.Figure{ID: "f", Title: "F", Caption: "c",
					Chart: figure.Lines{X: figure.Axis{Label: "Tissue_Factor"},
						Y: figure.Axis{Label: "change (nats)"}}}},
			}}}}
	page := html(t, r)
	order := 0
	for _, want := range []string{"What was found", "How sure that is", "What not to trust",
		`<li><a href="#section-s">Too wide</a></li>`, "What protects the subjects",
		`<li><a href="#section-s">Nothing does</a></li>`, `id="section-s"`, "Words in the picture: ", `>nats</a>`,
		"What the words mean"} {
		_, rest, ok := strings.Cut(page[order:], want)
		if !ok {
			t.Fatalf("%q is missing, or stands before what it should follow", want)
		}
		order = len(page) - len(rest)
	}
	if n := strings.Count(page, `">Too wide</a>`); n != 1 {
		t.Errorf("a doubt is listed %d times", n)
	}
	if strings.Contains(page, `">No warning</a>`) {
		t.Error("what is no warning is listed as a doubt")
	}
	if strings.Contains(page, ">Factor</a>") {
		t.Error("a part of a name is taken for a term")
	}
	lead := page[strings.Index(page, `id="section-s"`):]
	lead = lead[:strings.Index(lead, "</p>")]
	if strings.Count(lead, "<a ") != 1 || !strings.HasSuffix(lead, "the refactor and scores.csv.") {
		t.Errorf("terms in %s", lead)
	}
}

func TestTooLongPicturesAreParted(t *testing.T) {
	b := figure.Bars{}
	for i := range 100 {
		b.Labels, b.Values = append(b.Labels, "row "+string(rune('A'+i%26))), append(b.Values, float64(i))
	}
	parts := figure.Figure{ID: "f", Chart: b}.Parts()
	if len(parts) != 4 { // 36, 22, 22 and 20 rows
		t.Fatalf("%d parts", len(parts))
	}
	marks := 0
	for _, p := range parts {
		var svg strings.Builder
		testkit.Do(t, p.SVG(&svg))
		marks += strings.Count(svg.String(), `rx="1"`)
		if !strings.Contains(svg.String(), ">100</text>") {
			t.Errorf("%s is not on the scale of all", p.ID)
		}
	}
	if marks != 100 {
		t.Errorf("%d bars", marks)
	}
}
