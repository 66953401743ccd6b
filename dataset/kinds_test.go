package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// cells is a column as it may stand anywhere: its cells, and the range that a plan gives a number.
type cells struct {
	name string
	of   []string
	span *[2]float64
}

// ways puts a column into a table as each kind of column that can hold it: a feature that is a number or a category,
// and a column of the subjects, which may be the outcome.
func ways(t *testing.T, c cells) map[string]*Summary {
	t.Helper()
	made := map[string]*Summary{}
	levels, numbers := []string{}, true
	for _, cell := range c.of {
		if _, ok := parseNumber([]byte(cell)); !ok {
			numbers = false
		}
		if !slices.Contains(levels, cell) && !IsMissing(cell) {
			levels = append(levels, cell)
		}
	}
	other := Column{Name: "other"}
	for kind, own := range map[string]Column{"number": {Name: c.name, Range: c.span},
		"category": {Name: c.name, Kind: Category, Levels: levels}, "subjects": other} {
		if kind == "number" && !numbers {
			continue
		}
		schema := Schema{Views: []View{{Name: "v", Columns: []Column{own}}}}
		if kind == "subjects" {
			schema.Subject = []Column{{Name: c.name, Kind: Label}}
		}
		var rows []Row
		for i, cell := range c.of {
			row := Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{{float64(i*i%17) + 0.5}}}
			switch kind {
			case "subjects":
				row.Subject = []string{cell}
			case "category":
				row.Views[0][0] = math.NaN()
				if at := slices.Index(levels, cell); at >= 0 {
					row.Views[0][0] = float64(at)
				}
			default:
				row.Views[0][0], _ = parseNumber([]byte(cell))
			}
			rows = append(rows, row)
		}
		made[kind] = describe(t, testkit.Get(NewTable(schema, rows))(t))
	}
	return made
}

// spread are n cells that a function of their number writes.
func spread(n int, of func(i int) string) (all []string) {
	for i := range n {
		all = append(all, of(i))
	}
	return all
}

func decimal(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// Every doubt of one site's columns runs on every kind of column: an example of each is found wherever it can stand,
// and a column much like it that is in order is not doubted.
func TestEveryDoubtRunsOnEveryKindOfColumn(t *testing.T) {
	age := func(i int) string { return decimal(25+float64(i*37%41)+float64(i%7)/7, 2) }
	examples := map[string][]cells{
		"codes": {{of: append(spread(40, age), "-2147483648")}, {of: append(spread(40, age), "-9", "-9")},
			{of: append(spread(40, age), "340282350000000000000000000000000000000")},
			{of: append(spread(40, age), "1e20")}, {of: append(spread(40, age), "1e30", "1e30")},
			{of: append(spread(40, age), "999.9", "999.9")}, {of: append(spread(40, age), "-32768")},
			{of: append(spread(40, age), "9.969209968386869e+36")}},
		"bare zeros": {{of: append(spread(30, func(i int) string { return strconv.Itoa(80 + 2*i) }), "0", "0")}},
		"outliers":   {{of: append(spread(40, age), "7214")}},
		"slips": {{of: append(spread(40, func(i int) string { return decimal(165+float64(i*31%40)/2, 1) }),
			"16.55", "17.1", "17.9", "18.3", "16.2")},
			{of: append(spread(40, func(i int) string { return decimal(1.5+float64(i*31%40)/80, 3) }), "155.5", "162.1",
				"171.9", "183.2", "190.4")},
			{of: spread(60, func(i int) string {
				return decimal((0.5+float64(i*37%41)/20)*[]float64{1, 88.4}[i%2], 2)
			})},
			{of: spread(60, func(i int) string { // °C and °F
				return decimal([]float64{36 + float64(i*37%41)/15, 97 + float64(i*37%41)/8}[i%2], 1)
			})}},
		"thousands": {{of: append(spread(30, func(i int) string { return strconv.Itoa(700 + 9*i) }), "1.012", "1.104",
			"1.210", "1.031", "1.007")}},
		"dates": {{of: spread(40, func(i int) string { return fmt.Sprint(202001 + i%12) })},
			{of: spread(40, func(i int) string { return fmt.Sprintf("2023%02d%02d", 1+i%12, 1+i*7%28) })}},
		"row numbers": {{of: spread(40, func(i int) string { return strconv.Itoa(i * 7 % 40) })},
			{name: "Unnamed: 0.1", of: spread(40, func(i int) string { return strconv.Itoa(3 * i) })},
			{name: "X", of: spread(12, func(i int) string { return strconv.Itoa(5 + i) })}},
		"beyond":   {{of: spread(40, age), span: &[2]float64{0, 30}}},
		"cramped":  {{of: spread(40, age), span: &[2]float64{0, 10000}}},
		"repeated": {{of: append(spread(40, age), spread(20, func(int) string { return "44.1234" })...)}},
		"spellings": {{of: spread(40, func(i int) string { return []string{"no", "yes", "no\u200b"}[i%3] })},
			{of: spread(40, func(i int) string { return []string{"pre", "Pre", "post"}[i%3] })},
			{of: spread(40, func(i int) string { return []string{"nо", "no"}[i%2] })}},
	}
	for _, d := range doubts {
		if len(examples[d.name]) == 0 {
			t.Errorf("no example of the doubt %q", d.name)
		}
		for _, c := range examples[d.name] {
			if c.name == "" {
				c.name = "column"
			}
			for kind, s := range ways(t, c) {
				if c.span != nil && kind != "number" {
					continue // only numbers of a plan have a range
				}
				found := false
				for _, f := range s.facts() {
					found = found || f.name == c.name && (d.see != nil && len(d.see(f)) > 0 || d.item != nil &&
						d.item(s, f) != "")
				}
				if !found || !strings.Contains(fmt.Sprint(s.Doubts()), c.name) {
					t.Errorf("%s: no doubt on %v as %s: %v", d.name, c.of[len(c.of)-6:], kind, s.Doubts())
				}
			}
		}
	}
	for name, of := range map[string][]string{
		"ages": spread(40, age), "kinds": spread(40, func(i int) string { return strconv.Itoa(1 + i%4) }),
		"words":          spread(40, func(i int) string { return []string{"a", "b", "c"}[i%3] }),
		"doses":          spread(40, func(i int) string { return []string{"5", "50", "500"}[i%3] }),
		"eighths":        spread(40, func(i int) string { return decimal(float64(100+i*7%30)/8, 3) }),
		"three decimals": spread(400, func(i int) string { return decimal(1+float64(i*7919%9000)/1000, 3) }),
		"counts":         spread(40, func(i int) string { return strconv.Itoa(3 + i*i%29) }),
		"years":          spread(40, func(i int) string { return strconv.Itoa(1940 + i*17%60) }),
		"signs":          spread(40, func(i int) string { return []string{"A+", "A-", "A"}[i%3] }),
		"platelets":      spread(40, func(i int) string { return strconv.Itoa(90 + i*i*13%310) }),
		"waves":          spread(90, func(i int) string { return decimal(math.Exp(2*math.Sin(float64(i))), 3) }),
	} {
		for kind, s := range ways(t, cells{name: "column", of: of}) {
			if got := s.Doubts(); len(got) > 0 {
				t.Errorf("%s as %s: %v", name, kind, got)
			}
		}
	}
}

// So does every doubt of several sites.
func TestEveryDoubtOfSitesRunsOnEveryKindOfColumn(t *testing.T) {
	cycle := func(of ...string) []string { return spread(60, func(i int) string { return of[i*i%7%len(of)] }) }
	sizes := func(times float64) []string {
		return spread(60, func(i int) string { return decimal(times*(1+float64(i*37%41)/41), 2) })
	}
	for name, c := range map[string]struct{ a, b []string }{
		"units":                        {sizes(1), sizes(38.7)},
		"levels":                       {cycle("0", "1"), cycle("1", "2")},
		"levels of words":              {cycle("pre", "post"), cycle("prä", "post")},
		"levels of no value in common": {cycle("f", "m"), cycle("1", "2")},
		"levels of one key":            {cycle("no", "yes"), cycle("no\u200b", "yes")},
		"levels of look-alikes":        {cycle("no", "yes"), cycle("nо", "yes")},
		"levels of capitals":           {cycle("Ja", "Nein"), cycle("ja", "nein")},
		"levels of more than two":      {cycle("mild", "moderate", "severe"), cycle("mild", "mittel", "severe")},
		"levels shifted":               {cycle("1", "2", "3"), cycle("2", "3", "4")},
		"one for each site":            {cycle("x"), cycle("y")},
		"signs": {sizes(1), spread(60, func(i int) string {
			return decimal(math.Log(0.5+float64(i*37%41)/41), 2)
		})},
	} {
		as, bs := ways(t, cells{name: "column", of: c.a}), ways(t, cells{name: "column", of: c.b})
		for kind, s := range as {
			if kind == "category" { // of which the plan lists the levels of all
				s, bs[kind] = category(t, c.a, c.b)
			}
			found := false
			for at, f := range s.facts() {
				for _, d := range siteDoubts {
					what, _ := d.see([]string{"a", "b"}, []*facts{f, bs[kind].facts()[at]})
					found = found || what != "" && f.name == "column" && strings.HasPrefix(name, d.name)
				}
			}
			if got := fmt.Sprint(Others{Sites: []string{"a", "b"},
				Summaries: []*Summary{s, bs[kind]}}.Doubts()); !found || !strings.Contains(got, "column") {
				t.Errorf("%s as %s: %s", name, kind, got)
			}
		}
	}
	// Nor is what chance or medicine makes doubted: a rare level, other shares, a site with fewer levels.
	for name, c := range map[string]struct{ a, b []string }{
		"a rare level": {cycle("I", "II", "III"), append(cycle("I", "II", "III"), "IV")},
		"fewer levels": {cycle("I", "II", "III"), cycle("I", "II")},
		"the same":     {cycle("0", "1"), cycle("1", "0")}, "amounts": {sizes(1), sizes(1.4)},
		"one level": {cycle("0", "1"), cycle("1")},
	} {
		as, bs := ways(t, cells{name: "column", of: c.a}), ways(t, cells{name: "column", of: c.b})
		for _, kind := range []string{"number", "subjects"} {
			if as[kind] == nil {
				continue
			}
			for at, f := range as[kind].facts() {
				for _, d := range siteDoubts {
					if what, _ := d.see([]string{"a", "b"}, []*facts{f, bs[kind].facts()[at]}); what != "" {
						t.Errorf("%s as %s: %s", name, kind, what)
					}
				}
			}
		}
	}
}

// category is a category of two sites.
func category(t *testing.T, a, b []string) (*Summary, *Summary) {
	t.Helper()
	both := ways(t, cells{name: "column", of: append(slices.Clone(a), b...)})["category"]
	levels := both.Views[0].Features[0].Levels
	of := func(cells []string) *Summary {
		s := *both
		s.Views = []ViewSummary{{Name: "v", Subjects: int64(len(cells)),
			Features: []FeatureSummary{{Name: "column", Observed: int64(len(cells))}}}}
		for _, l := range levels {
			n := int64(0)
			for _, cell := range cells {
				if cell == l.Name {
					n++
				}
			}
			s.Views[0].Features[0].Levels = append(s.Views[0].Features[0].Levels, Level{l.Name, n})
		}
		return &s
	}
	return of(a), of(b)
}
