package report_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
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
	if want := "script-src &#39;sha256-" + base64.StdEncoding.EncodeToString(digest[:]) +
		"&#39;"; !strings.Contains(strings.ReplaceAll(page, "&#43;", "+"), want) {
		t.Errorf("the policy does not allow the script: want %s", want)
	}
	page = strings.Replace(page, script[0], "", 1)
	for _, target := range regexp.MustCompile(`(?:href|src|action|xlink:href)="([^"]*)"`).FindAllStringSubmatch(page,
		-1) {
		if !strings.HasPrefix(target[1], "#") && !strings.HasPrefix(target[1], "data:") {
			t.Errorf("refers to %q", target[1])
		}
	}
	for _, word := range []string{"<script", "url(", "@import", "<iframe", "<img", "<object", "javascript:",
		"ZgotmplZ"} {
		if strings.Contains(page, word) {
			t.Errorf("holds %q", word)
		}
	}
	// The name of the SVG vocabulary looks like an address, but is none.
	if rest := strings.ReplaceAll(page, `xmlns="http://www.w3.org/2000/svg"`,
		""); regexp.MustCompile(`https?://`).MatchString(rest) {
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
	r := &report.Report{Title: evil, Subtitle: evil, Meta: []figure.Fact{{Name: evil, Value: evil}},
		Headline: []figure.Fact{{Name: evil, Value: evil}},
		Sections: []figure.Section{{ID: "s", Title: evil, Lead: evil + "\n\n" + evil, Items: []figure.Item{
			{Note: &figure.Note{Title: evil, Text: evil}},
			{Table: &figure.Table{ID: "t", Title: evil, Caption: evil,
				Columns: []figure.Column{{Name: evil, Unit: evil, Text: []string{evil}}}}},
			{Figure: &figure.Figure{ID: "f", Title: evil, Caption: evil, Alt: evil,
				Chart: figure.Bars{Labels: []string{evil}, Groups: []string{evil}, Values: figure.Numbers{1}}}},
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
	page := html(t, &report.Report{Headline: []figure.Fact{{Name: "n", Value: "-0.53 (-1 to 2e-5)"},
		{Name: "m", Value: "mean-field"}}})
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
	points := figure.Item{Figure: &figure.Figure{ID: "p",
		Chart: figure.Scatter{Groups: []figure.Group{{X: figure.Numbers{1}, Y: figure.Numbers{1}}}}}}
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
				if file, err := os.ReadFile(filepath.Join(dir, "figures", f.ID+".svg")); err != nil ||
					!bytes.Equal(file, b.Bytes()) {
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
	for _, want := range []string{"The first 30 of 100000 rows.",
		"Beside this page: figures/own.svg, figures/own.csv"} {
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

var (
	siteNames = []string{"Aachen", "Bilbao", "Coimbra", "Dundee", "Espoo", "Freiburg im Breisgau University Hospital",
		"Graz", "Huddinge", "Ioannina", "Jena"}
	viewNames = []string{"MRI", "CSF", "clinic", "PET", "cognitive scores", "genes"}
)

func name(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return fmt.Sprintf("%s %d", list[i%len(list)], i/len(list)+1)
}

func names(list []string, n int) []string {
	s := make([]string, n)
	for i := range s {
		s[i] = name(list, i)
	}
	return s
}

// sample makes a report of a made-up study, the same for the same sizes.
func sample(sites, views, factors int) *report.Report {
	rng := rand.New(rand.NewPCG(uint64(sites), uint64(views*1000+factors)))
	return &report.Report{
		Title:    "Ageing and memory in three hospitals",
		Subtitle: "One model, fitted without moving a patient's record",
		Headline: []figure.Fact{{Name: "subjects at three sites", Value: "1\u202f144"},
			{Name: "of the variance explained, over the subjects of all sites", Value: "41 %"},
			{Name: "rounds until it settled", Value: "4"}, {Name: "differential privacy", Value: "none"}},
		Meta: []figure.Fact{
			{Name: "Method", Value: "factors, 6 factors"}, {Name: "Sites", Value: fmt.Sprint(sites)},
			{Name: "Plan", Value: "3f9a6f0c8d71b2e4a5c09d8e7f60514233221100ffeeddccbbaa998877665544"},
			{Name: "Version", Value: "0.1.0"},
		},
		Sections: []figure.Section{
			{ID: "privacy", Title: "What was protected", Items: []figure.Item{{Note: &figure.Note{
				Title: "No differential privacy", Warning: true,
				Text: "This run was not protected by differential privacy. The sites sent sums over their subjects, " +
					"without noise. No row left a site, but sums can tell about single subjects.",
			}}}},
			{ID: "data", Title: "Who has what", Lead: "Three hospitals took part. Not every hospital measured " +
				"everything, and some subjects lack what their hospital did measure.",
				Items: []figure.Item{{Figure: overview(rng, sites, views)}}},
			{ID: "variance", Title: "Variance explained", Lead: "R² is the share of the variance of a view that the " +
				"factors account for: 1 − residual sum of squares ÷ total sum of squares, over the subjects who have " +
				"the view.",
				Items: []figure.Item{{Figure: variance(rng, sites, views, factors)}, {Table: sizes(sites)}}},
			{ID: "space", Title: "The latent space", Items: []figure.Item{{Figure: space(rng, sites)}}},
			{ID: "loadings", Title: "Loadings", Items: []figure.Item{{Figure: loadings(rng, views)},
				{Figure: forest(rng, sites)}}},
			{ID: "convergence", Title: "Convergence", Items: []figure.Item{{Figure: convergence(rng, sites)},
				{Note: &figure.Note{Title: "Converged", Text: "The log-likelihood changed by less than 1e-6 of " +
					"itself in the last round."}}}},
		},
	}
}

func overview(rng *rand.Rand, sites, views int) *figure.Figure {
	o := figure.Overview{}
	for v := range views {
		o.Views = append(o.Views, figure.ViewSize{Name: name(viewNames, v),
			Features: []int{68, 3, 12, 40, 9, 12000}[v%6]})
	}
	for s := range sites {
		site := figure.SiteSubjects{Name: name(siteNames, s)}
		all := make([]bool, views)
		for v := range all {
			all[v] = views == 1 || (s+2*v)%5 != 3
		}
		site.Patterns = append(site.Patterns, figure.Pattern{Present: all, Subjects: 90 + rng.IntN(260)})
		for range min(views-1, 3) {
			some := make([]bool, views)
			for v := range some {
				some[v] = all[v] && rng.Float64() < 0.6
			}
			site.Patterns = append(site.Patterns, figure.Pattern{Present: some, Subjects: 5 + rng.IntN(60)})
		}
		o.Sites = append(o.Sites, site)
	}
	return &figure.Figure{ID: "overview", Title: "Subjects by site and view", Chart: o,
		Caption: "A bar is as long as the site has subjects. Hatched parts lack the view. d is the number of " +
			"features, n that of subjects."}
}

func variance(rng *rand.Rand, sites, views, factors int) *figure.Figure {
	h := figure.Heatmap{Legend: "share of the view's variance explained", Format: figure.Percent,
		Columns: names(viewNames, views), TotalLabel: "All factors"}
	for f := range factors {
		h.Rows = append(h.Rows, fmt.Sprintf("Factor %d", f+1))
	}
	for s := range sites + 1 {
		facet := figure.Facet{Title: "All sites"}
		if s > 0 {
			facet.Title = name(siteNames, s-1)
		}
		facet.Totals = make(figure.Numbers, views)
		for f := range factors {
			row := make(figure.Numbers, views)
			for v := range row {
				row[v] = 0.4 * math.Exp(-0.5*float64(f)) * rng.Float64()
				facet.Totals[v] += row[v] * 0.9
				if s > 0 && (s-1+2*v)%5 == 3 {
					row[v] = math.NaN()
				}
			}
			facet.Values = append(facet.Values, row)
		}
		for v := range facet.Totals {
			if s > 0 && (s-1+2*v)%5 == 3 {
				facet.Totals[v] = math.NaN()
			}
		}
		h.Facets = append(h.Facets, facet)
	}
	return &figure.Figure{ID: "variance", Title: "Variance explained by factor and view", Chart: h,
		Caption: "The darker a cell, the more of that view's variance the factor accounts for. The last row is for " +
			"all factors together; it is not the sum of the rows above it."}
}

func sizes(sites int) *figure.Table {
	t := &figure.Table{ID: "sent", Title: "What each site sent",
		Caption: "Bytes are those of the sealed contributions.", Columns: []figure.Column{
			{Name: "Site", Text: names(siteNames, sites)}, {Name: "Sent", Unit: "bytes", Format: figure.Count},
			{Name: "R²", Format: figure.Percent}}}
	for s := range sites {
		t.Columns[1].Numbers = append(t.Columns[1].Numbers, float64(18234+s*971))
		t.Columns[2].Numbers = append(t.Columns[2].Numbers, 0.612-0.013*float64(s))
	}
	return t
}

func space(rng *rand.Rand, sites int) *figure.Figure {
	s := figure.Scatter{X: figure.Axis{Label: "Factor 1"}, Y: figure.Axis{Label: "Factor 2"}}
	for i := range sites {
		a, b, r := 0.5+rng.Float64(), 0.4+rng.Float64(), rng.Float64()*1.6-0.8
		s.Groups = append(s.Groups, figure.Group{Name: name(siteNames, i),
			Mean: figure.Numbers{rng.NormFloat64(), rng.NormFloat64()}, Cov: figure.Numbers{a * a, r * a * b, b * b}})
	}
	return &figure.Figure{ID: "space", Title: "Where the sites lie", Chart: s,
		Caption: "The inner ellipse holds half of a site's subjects, the outer nine tenths, if they are normally " +
			"distributed. Single subjects are not shown."}
}

func loadings(rng *rand.Rand, views int) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "standardised loading on factor 1"}, Top: 15}
	for i := range 240 {
		v := name(viewNames, i*views/240)
		b.Labels = append(b.Labels, fmt.Sprintf("%s_thickness_of_region_%d_left", v, i))
		b.Groups = append(b.Groups, v)
		b.Values = append(b.Values, rng.NormFloat64()*0.3)
	}
	return &figure.Figure{ID: "loadings-1", Title: "Features that make factor 1", Chart: b,
		Caption: "The fifteen features with the largest loadings. A subject who is high on the factor is high on " +
			"features at the right and low on those at the left."}
}

func forest(rng *rand.Rand, sites int) *figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "difference from the mean of all sites, in standard deviations"},
		Labels: names(siteNames, sites)}
	for range sites {
		v, w := rng.NormFloat64()*0.4, 0.1+0.3*rng.Float64()
		b.Values, b.Low, b.High = append(b.Values, v), append(b.Low, v-w), append(b.High, v+w)
	}
	return &figure.Figure{ID: "between-sites", Title: "How the sites differ on hippocampal volume", Chart: b,
		Caption: "Marks are estimates, whiskers 90 % intervals."}
}

func convergence(rng *rand.Rand, sites int) *figure.Figure {
	l := figure.Lines{X: figure.Axis{Label: "round"},
		Y: figure.Axis{Label: "distance from the last log-likelihood, per subject (nats)", Log: true}}
	for s := range sites {
		line := figure.Line{Name: name(siteNames, s)}
		for r := range 16 {
			line.X = append(line.X, float64(r+1))
			line.Y = append(line.Y, math.Exp(-0.6*float64(r)+rng.NormFloat64()*0.2+float64(s%5)))
		}
		l.Series = append(l.Series, line)
	}
	return &figure.Figure{ID: "convergence-curve", Title: "How the fit settled", Chart: l,
		Caption: "Each line is a site. A straight fall on this axis means that every round removes the same share of " +
			"what is left."}
}
