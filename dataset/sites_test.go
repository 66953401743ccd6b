package dataset

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// severalSites describes one feature at sites.
func severalSites(t *testing.T, values ...[]float64) (o Others) {
	t.Helper()
	for i, v := range values {
		o.Sites, o.Summaries = append(o.Sites, fmt.Sprintf("s%d", i)), append(o.Summaries, oneColumn(t, v))
	}
	return o
}

func TestUnitsAreDoubted(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	skewed := func(n int, factor float64) (values []float64) {
		for range n {
			values = append(values, factor*math.Exp(0.6*rng.NormFloat64()))
		}
		return values
	}
	normal := func(n int, mean, sd float64) (values []float64) {
		for range n {
			values = append(values, mean+sd*rng.NormFloat64())
		}
		return values
	}
	for name, c := range map[string]struct {
		sites [][]float64
		want  string
	}{
		"one unit": {[][]float64{skewed(30, 1), skewed(40, 1.5), skewed(30, 2)}, ""},
		"a thousand": {[][]float64{normal(30, 5, 1), normal(40, 5000, 1000), normal(30, 5, 1)},
			"values at s1 are about 900 times as large as at s0, s2"},
		"a hundredth": {[][]float64{normal(60, 40, 4), normal(60, 0.4, 0.04), normal(60, 40, 4)},
			"values at s1 are about 0.009 times as large as at s0, s2"},
		"decilitres, negative": {[][]float64{normal(60, -14, 1), normal(60, -140, 10)},
			"values at s1 are about 10 times as large as at s0"},
		"around zero and not": {[][]float64{normal(60, 12, 1), normal(60, 0, 1), normal(60, 12, 1)},
			"values below zero stand at s1 alone"},
		"around zero":  {[][]float64{normal(60, 1, 1), normal(60, 0, 1), normal(20, 3, 1)}, ""},
		"few subjects": {[][]float64{normal(9, 5, 1), normal(40, 5000, 1000)}, ""},
		"mostly zeros": {[][]float64{append(make([]float64, 30), skewed(20, 1)...), skewed(50, 1000)}, ""},
		"mmHg and kPa": {[][]float64{normal(180, 130, 18), normal(40, 17.3, 2.4), normal(60, 135, 18)},
			"values at s1 are about 0.12 times as large as at s0, s2"},
		"°C and °F": {[][]float64{normal(60, 37, 0.7), normal(60, 98.6, 1.3)},
			"values at s1 are about 2.6 times as large as at s0"},
		"sixfold":           {[][]float64{normal(60, 10, 1), normal(60, 60, 6)}, "values at s1 are about 5.5 times"},
		"pounds":            {[][]float64{normal(90, 78, 12), normal(90, 172, 26)}, "values at s1 are about 2.2 times"},
		"% and mmol/mol":    {[][]float64{normal(90, 6.4, 1), normal(90, 46.5, 11)}, "values at s1 are about 7"},
		"children":          {[][]float64{normal(90, 9, 3), normal(90, 55, 10)}, ""},
		"other people":      {[][]float64{normal(30, 10, 2), normal(60, 18, 3), normal(200, 11, 2)}, ""},
		"other instruments": {[][]float64{normal(10, 40, 1), normal(10, 45, 1), normal(10, 40, 1)}, ""},
	} {
		got := severalSites(t, c.sites...).Doubts().Error()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	// One law at all sites, as skewed as measurements are: log-normal up to σ = 2.
	alarms := 0
	for i := range 3000 {
		var sites [][]float64
		for range 5 {
			values := normal(10+i%20, 0, 0.5+1.5*float64(i%4)/3)
			for j := range values {
				values[j] = math.Exp(values[j])
			}
			sites = append(sites, values)
		}
		alarms += len(severalSites(t, sites...).Doubts())
	}
	if alarms > 3 {
		t.Errorf("%d of 3000 features of one law are doubted", alarms)
	}
}

func TestCodingsAreDoubted(t *testing.T) {
	some := func(n int, of ...float64) (values []float64) {
		for i := range n {
			values = append(values, of[i%len(of)])
		}
		return values
	}
	for name, c := range map[string]struct {
		sites [][]float64
		want  bool
	}{
		"0 and 1, and 1 and 2":   {[][]float64{some(20, 0, 1), some(20, 1, 2)}, true},
		"0 and 1":                {[][]float64{some(20, 0, 1), some(20, 1, 0)}, false},
		"three kinds":            {[][]float64{some(20, 0, 1), some(20, 1, 2), some(20, 0, 1, 2)}, false},
		"one kind only":          {[][]float64{some(20, 0, 1), some(20, 1)}, false},
		"too few to have had it": {[][]float64{some(20, 0, 1), some(6, 1, 2)}, false},
	} {
		got := strings.Contains(severalSites(t, c.sites...).Doubts().Error(),
			"takes two values, and not the same two, at s0, s1")
		if got != c.want {
			t.Errorf("%s: doubted: %v", name, got)
		}
	}
}

// A class is at most an eighth of a power of two wide, so that quantiles are 7 % off at most.
func TestSizesKnowQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 100 {
		var s sizes
		var all []float64
		for range 1 + rng.IntN(300) {
			v := math.Exp(4 * rng.NormFloat64())
			if rng.IntN(10) == 0 {
				v = 0
			}
			all = append(all, v)
			s.add(v*float64(1-2*rng.IntN(2)), 1)
		}
		slices.Sort(all)
		for _, share := range []float64{0.25, 0.5, 0.75, 1} {
			want := all[int(math.Ceil(share*float64(len(all))))-1]
			if got := s.quantile(share); math.Abs(got-want) > 0.07*want {
				t.Fatalf("quantile %g: %g, want %g", share, got, want)
			}
		}
	}
	var ends sizes
	for _, v := range []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 0} {
		ends.add(v, 1)
	}
	if got := ends.quantile(1); got < 1e308 || math.IsInf(got, 0) {
		t.Errorf("the largest number is %g", got)
	}
}

func TestSubjectColumnsAndCopiesAreDoubted(t *testing.T) {
	column := "sex"
	site := func(first float64, labels ...string) *Summary {
		var rows []Row
		for i := range 12 {
			rows = append(rows, Row{ID: fmt.Sprintf("s%02d", i), Views: [][]float64{{first + float64(i)}},
				Subject: []string{labels[i%len(labels)]}})
		}
		table := testkit.Get(NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}},
			Subject: []Column{{Name: column, Kind: Label}}}, rows))(t)
		return describe(t, table)
	}
	for name, c := range map[string]struct {
		other *Summary
		want  string
	}{
		"the same words": {site(2, "m", "f", ""), ""},
		"other words": {site(2, "1", "2", ""), "subjects, column sex: no other site has any of the values that " +
			"stand at a, b"},
		"one for each site": {site(2, "x"), "subjects, column sex: takes one value at each site, and not the same at " +
			"all: a, b"},
		"one word is known": {site(2, "f", "x"), ""},
		"the same rows":     {site(1, "f", "m"), "sites a and b: have the same rows"},
	} {
		first := site(1, "f", "m")
		if name == "one for each site" {
			first = site(1, "y")
		}
		got := Others{Sites: []string{"a", "b"}, Summaries: []*Summary{first, c.other}}.Doubts().Error()
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
	constant := func(x float64) *Summary {
		var rows []Row
		for i := range 12 {
			rows = append(rows, Row{ID: fmt.Sprint(x, 10+i), Views: [][]float64{{x, x + float64(i)}}})
		}
		return describe(t, testkit.Get(NewTable(
			Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "district"}, {Name: "y"}}}}}, rows))(t))
	}
	if got := (Others{Sites: []string{"a", "b", "c", "d"}, Summaries: []*Summary{constant(1), constant(4), constant(5),
		constant(6)}}).Doubts().Error(); !strings.Contains(got, "feature district: takes one value at each site") ||
		strings.Contains(got, "another unit") {
		t.Errorf("numbers of sites: got %q", got)
	}
	column = "hospital" // may say where a subject is
	if got := (Others{Sites: []string{"a", "b"}, Summaries: []*Summary{site(1, "y"), site(2, "x")}}).Doubts(); got !=
		nil {
		t.Errorf("a name of a site: %v", got)
	}
}

// many are 600 subjects from number first on with so many values, of whom the second has those of the first.
func many(t *testing.T, width, first int) *Summary {
	var columns []Column
	for j := range width {
		columns = append(columns, Column{Name: string(rune('a' + j))})
	}
	var rows []Row
	for i := range 600 {
		values := make([]float64, width)
		for j := range values {
			values[j] = 7*float64((first+i)*(j+1)) + 0.5
		}
		if i == 1 && first == 0 {
			values = rows[0].Views[0]
		}
		rows = append(rows, Row{ID: fmt.Sprintf("s%04d", first+i), Views: [][]float64{values}})
	}
	return describe(t, testkit.Get(NewTable(Schema{Views: []View{{Name: "v", Columns: columns}}}, rows))(t))
}

// Subjects with the same values as another are counted, at one site and at two. Whole numbers
// and few values agree by chance.
func TestCopiesAreCounted(t *testing.T) {
	site := func(first int, values func(i int) []float64) *Summary {
		var rows []Row
		for i := range 30 {
			rows = append(rows, Row{ID: fmt.Sprintf("s%04d", first+i), Views: [][]float64{values(first + i)}})
		}
		table := testkit.Get(
			NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "a"}, {Name: "b"}, {Name: "c"}}}}},
				rows))(t)
		return describe(t, table)
	}
	drawn := func(i int) []float64 { return []float64{float64(i) + 0.5, 0.25, float64(i*i) / 64.5} }
	north := site(0, func(i int) []float64 { return drawn(max(i, 5)) })
	south := site(20, drawn)
	if north.Copies != 5 || south.Copies != 0 {
		t.Errorf("%d and %d copies", north.Copies, south.Copies)
	}
	if got := fmt.Sprint(north.Doubts()); !strings.Contains(got,
		"5 of 30 have the values of another in every feature") {
		t.Error(got)
	}
	if got := fmt.Sprint(Others{Sites: []string{"north", "south"},
		Summaries: []*Summary{north, south}}.Doubts()); !strings.Contains(got,
		"sites north and south: 10 subjects have the same values in every feature at both") {
		t.Error(got)
	}
	if counts := site(0, func(i int) []float64 { return []float64{0.5, 0.5, float64(i % 2)} }); counts.Copies != 0 {
		t.Errorf("%d copies of few values", counts.Copies)
	}
	for width, want := range map[int]bool{3: false, 7: true} { // one of 600 may have a short row by chance
		one, other := many(t, width, 0), many(t, width, 599)
		if got := strings.Contains(fmt.Sprint(one.Doubts()), "1 of 600 have the values of another"); got != want {
			t.Errorf("a copy of %d values: named %v", width, got)
		}
		if got := strings.Contains(fmt.Sprint(Others{Sites: []string{"north", "south"},
			Summaries: []*Summary{one, other}}.Doubts()), "one subject has the same values"); got != want {
			t.Errorf("somebody at two sites with %d values: named %v", width, got)
		}
	}
	standardised := func(i int) []float64 { // 0/1 numbers of 20 %
		return []float64{-0.5 + 2.5*float64(i%5/4), -0.5 + 2.5*float64(i%6/5), -0.5 + 2.5*float64(i%4/3)}
	}
	if binary := site(0, standardised); binary.Copies != 0 {
		t.Errorf("%d copies of numbers of two values", binary.Copies)
	}
	if got := (Others{Sites: []string{"north", "south"}, Summaries: []*Summary{site(0, standardised),
		site(20, standardised)}}).Doubts(); strings.Contains(fmt.Sprint(got), "the same values") {
		t.Error(got)
	}
}

// A site whose rows are another's under other ids is named, whatever its numbers are, if these do not
// agree by chance anyway. In 600 pairs of sites that have nobody in common there is no alarm: each fails at
// four standard errors, of counts that are given four standard errors too, so less often than 1 in 30 000.
func TestCopiesOfWholeNumbersAreFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 5))
	values := rng.Perm(200)
	north, south := make([]float64, 200), make([]float64, 200)
	for i, v := range values {
		north[i], south[199-i] = float64(v), float64(v)
	}
	if got := severalSites(t, north, south).Doubts().Error(); !strings.Contains(got,
		"sites s0 and s1: 200 subjects have the same values in every feature at both") {
		t.Errorf("a copy in another order: %q", got)
	}
	normal := func(mean, sd, step float64) float64 { return step * math.Round((mean+sd*rng.NormFloat64())/step) }
	for name, c := range map[string]struct {
		row   func() [2]float64
		found bool
	}{
		"age and a mass":     {func() [2]float64 { return [2]float64{normal(60, 10, 1), normal(27, 4, 0.1)} }, true},
		"two with fractions": {func() [2]float64 { return [2]float64{normal(60, 10, 0.1), normal(27, 4, 0.1)} }, true},
		"half are zeros": {func() [2]float64 {
			if rng.IntN(2) == 0 {
				return [2]float64{}
			}
			return [2]float64{rng.Float64(), rng.Float64()}
		}, false},
		"few values":  {func() [2]float64 { return [2]float64{float64(rng.IntN(2)), float64(rng.IntN(5))} }, false},
		"heavy tails": {func() [2]float64 { return [2]float64{math.Floor(1 / rng.Float64())} }, false},
	} {
		site := func(n int, shared map[uint64]int) map[uint64]int {
			all := maps.Clone(shared)
			for range n {
				x := c.row()
				all[math.Float64bits(x[0])*31+math.Float64bits(x[1])]++
			}
			return all
		}
		none := map[uint64]int{}
		for range 120 {
			north := site(200, none)
			if n := repeats(north, site(50+rng.IntN(300), none)); n > 0 {
				t.Errorf("%s: %d subjects of two sites that have none in common", name, n)
			}
			if n := repeats(north, site(30, north)); (n >= 200) != c.found || (n > 0) != c.found {
				t.Errorf("%s: of 200 subjects who are at both sites, %d", name, n)
			}
		}
	}
}
