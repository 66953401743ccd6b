package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/figure"
	"parley/internal/testkit"
	"parley/report"
)

func html(t *testing.T, r *report.Report) string {
	t.Helper()
	var b bytes.Buffer
	testkit.Do(t, r.HTML(&b))
	return b.String()
}

func TestPageLoadsNothing(t *testing.T) {
	page := html(t, sample(3, 4, 6))
	script := regexp.MustCompile(`(?s)<script>(.*)</script>`).FindStringSubmatch(page)
	if script == nil {
		t.Fatal("there is no script")
	}
	digest := sha256.Sum256([]byte(script[1]))
	if want := "script-src &#39;sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "&#39;"; !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), want) {
		t.Errorf("the policy does not allow the script: want %s", want)
	}
	page = strings.Replace(page, script[0], "", 1)
	for _, target := range regexp.MustCompile(`(?:href|src|action|xlink:href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if !strings.HasPrefix(target[1], "#") && !strings.HasPrefix(target[1], "data:") {
			t.Errorf("refers to %q", target[1])
		}
	}
	for _, word := range []string{"<script", "url(", "@import", "<iframe", "<img", "<object", "javascript:", "ZgotmplZ"} {
		if strings.Contains(page, word) {
			t.Errorf("holds %q", word)
		}
	}
	// The name of the SVG vocabulary looks like an address, but is none.
	if rest := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`, ""); regexp.MustCompile(`https?://`).MatchString(rest) {
		t.Error("holds an address")
	}
}

func TestAnchorsAreUniqueAndReached(t *testing.T) {
	page := html(t, sample(4, 3, 2))
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("%q is there twice", m[1])
		}
		ids[m[1]] = true
	}
	links := regexp.MustCompile(`href="#([^"]*)"`).FindAllStringSubmatch(page, -1)
	_, contents, _ := strings.Cut(page, "<nav")
	contents, _, _ = strings.Cut(contents, "</nav>")
	sections := strings.Count(contents, `href="#section-`)
	if sections != 6+1 {
		t.Errorf("%d links to sections, want one for each of six and the glossary", sections)
	}
	for _, m := range links {
		if !ids[m[1]] {
			t.Errorf("a link leads to %q, which is not there", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`aria-labelledby="([^"]*)"`).FindAllStringSubmatch(page, -1) {
		for id := range strings.FieldsSeq(m[1]) {
			if !ids[id] {
				t.Errorf("a label names %q, which is not there", id)
			}
		}
	}
}

func TestEveryTextIsEscaped(t *testing.T) {
	const evil = `</style></title><script>alert(1)</script><img src=x onerror="alert(2)">`
	r := &report.Report{Title: evil, Subtitle: evil, Meta: []figure.Fact{{Name: evil, Value: evil}}, Headline: []figure.Fact{{Name: evil, Value: evil}},
		Sections: []figure.Section{{ID: "s", Title: evil, Lead: evil + "\n\n" + evil, Items: []figure.Item{
			{Note: &figure.Note{Title: evil, Text: evil}},
			{Table: &figure.Table{ID: "t", Title: evil, Caption: evil, Columns: []figure.Column{{Name: evil, Unit: evil, Text: []string{evil}}}}},
			{Figure: &figure.Figure{ID: "f", Title: evil, Caption: evil, Alt: evil, Chart: figure.Bars{Labels: []string{evil}, Groups: []string{evil}, Values: figure.Numbers{1}}}},
		}}}}
	page := html(t, r)
	for word, own := range map[string]int{"<script": 1, "<img": 0} {
		if strings.Count(page, word) != own {
			t.Errorf("a text became an element: %s", word)
		}
	}
	if n := strings.Count(page, "</title>"); n != strings.Count(page, "<title") {
		t.Error("a text closed an element")
	}
}

func TestHeadlineHasMinusSigns(t *testing.T) {
	page := html(t, &report.Report{Headline: []figure.Fact{{Name: "n", Value: "-0.53 (-1 to 2e-5)"}, {Name: "m", Value: "mean-field"}}})
	for _, want := range []string{"<dd>−0.53 (−1 to 2e-5)</dd>", "<dd>mean-field</dd>"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestWhatCannotBeShownIsRefused(t *testing.T) {
	lines := func(id string) figure.Item {
		return figure.Item{Figure: &figure.Figure{ID: id, Chart: figure.Lines{}}}
	}
	points := figure.Item{Figure: &figure.Figure{ID: "p", Chart: figure.Scatter{Groups: []figure.Group{{X: figure.Numbers{1}, Y: figure.Numbers{1}}}}}}
	for name, c := range map[string]struct {
		items []figure.Item
		want  string
	}{
		"same figure":  {[]figure.Item{lines("a"), lines("a")}, `have the identifier "a"`},
		"path":         {[]figure.Item{lines("../a")}, "should be 1 to 80 of"},
		"none":         {[]figure.Item{lines("")}, "should be 1 to 80 of"},
		"long":         {[]figure.Item{lines(strings.Repeat("a", 81))}, "should be 1 to 80 of"},
		"table":        {[]figure.Item{{Table: &figure.Table{ID: "A b"}}}, "should be 1 to 80 of"},
		"two things":   {[]figure.Item{{Note: &figure.Note{}, Table: &figure.Table{ID: "t"}}}, "holds 2 things"},
		"nothing":      {[]figure.Item{{}}, "holds 0 things"},
		"no chart":     {[]figure.Item{{Figure: &figure.Figure{ID: "a"}}}, "no chart"},
		"each subject": {[]figure.Item{points}, "shows single subjects"},
	} {
		r := &report.Report{Sections: []figure.Section{{ID: "s", Items: c.items}}}
		err := r.HTML(io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
		dir := filepath.Join(t.TempDir(), "out")
		if err := r.WriteFiles(dir); err == nil {
			t.Errorf("%s: files were written", name)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a refused report left a directory", name)
		}
	}
	twice := &report.Report{Sections: []figure.Section{{ID: "s"}, {ID: "s"}}}
	if err := twice.HTML(io.Discard); err == nil {
		t.Error("two sections may have one identifier")
	}
	own := &report.Report{Local: true, Sections: []figure.Section{{ID: "p", Items: []figure.Item{points}}}}
	if err := own.HTML(io.Discard); err != nil {
		t.Errorf("a site's own report may show its subjects, and a section share a figure's identifier: %v", err)
	}
}

func TestFilesStandBesideThePage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results", "run")
	r := sample(3, 4, 6)
	for range 2 { // the second time over the first
		testkit.Do(t, r.WriteFiles(dir))
	}
	var got []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			got = append(got, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"report.html", "tables/sent.csv"}
	for _, s := range r.Sections {
		for _, item := range s.Items {
			if f := item.Figure; f != nil {
				want = append(want, "figures/"+f.ID+".svg", "figures/"+f.ID+".csv")
				var b bytes.Buffer
				testkit.Do(t, f.SVG(&b))
				if file, err := os.ReadFile(filepath.Join(dir, "figures", f.ID+".svg")); err != nil || !bytes.Equal(file, b.Bytes()) {
					t.Errorf("figure %s: the file is not the picture (%v)", f.ID, err)
				}
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("files\n%v, want\n%v", got, want)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || string(page) != html(t, r) {
		t.Errorf("report.html is not the page (%v)", err)
	}
}

func TestFilesThatCannotBeWritten(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	testkit.Do(t, os.WriteFile(blocked, nil, 0o600))
	err := sample(1, 1, 1).WriteFiles(blocked)
	if err == nil || !strings.Contains(err.Error(), filepath.Join(blocked, "figures")) {
		t.Errorf("error %v does not name the file", err)
	}
}

func TestLargeStudiesStaySmall(t *testing.T) {
	r := sample(30, 12, 20)
	r.Local = true
	g := figure.Group{Name: "own subjects"}
	for i := range 100_000 {
		g.X, g.Y = append(g.X, float64(i%1009)*0.0131), append(g.Y, float64(i%997)*0.0173)
	}
	r.Sections = append(r.Sections, figure.Section{ID: "own", Title: "Own subjects", Items: []figure.Item{
		{Figure: &figure.Figure{ID: "own", Title: "Own subjects", Chart: figure.Scatter{Groups: []figure.Group{g}}}}}})
	page := html(t, r)
	if len(page) > 2_000_000 {
		t.Errorf("%d bytes", len(page))
	}
	for _, want := range []string{"The first 30 of 100000 rows.", "Beside this page: figures/own.svg, figures/own.csv"} {
		if !strings.Contains(page, want) {
			t.Errorf("does not say %q", want)
		}
	}
}

func TestPageIsDeterministic(t *testing.T) {
	first, second := html(t, sample(5, 4, 3)), html(t, sample(5, 4, 3))
	if first != second {
		t.Error("two pages of one report differ")
	}
}
