package dataset

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/internal/testkit"
)

// column is a table of one feature.
func oneColumn(t *testing.T, values []float64) *Summary {
	t.Helper()
	var rows []Row
	for i, v := range values {
		rows = append(rows, Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{{v}}})
	}
	table := testkit.Get(NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}, rows))(t)
	return describe(t, table)
}

func TestCodesAreSuspected(t *testing.T) {
	ages := func(more ...float64) []float64 {
		for i := range 40 {
			more = append(more, float64(25+i*3/2))
		}
		return more
	}
	for name, c := range map[string]struct {
		values []float64
		want   string
	}{
		"ages":                          {ages(), "[]"},
		"-9 among ages":                 {ages(-9, -9, -9), "[-9]"},
		"three codes":                   {ages(-999, -99, -9, -9), "[-999 -99 -9]"},
		"999":                           {ages(999), "[999]"},
		"both ends":                     {ages(-9, 9999), "[-9 9999]"},
		"88 and 99 are ages":            {ages(88, 99), "[]"},
		"a plausible 9":                 {append(ages(), 9), "[]"},
		"-1 among counts":               {[]float64{-1, -1, 0, 1, 2, 3, 4, 5, 6, 7}, "[-1]"},
		"-1 among deviations":           {[]float64{-2, -1, -1, 0, 1, 2, 1, 0, -2}, "[]"},
		"-9 among deviations":           {[]float64{-9, -2.5, -1, 0.5, 0, 1, 2.2, 1, 0, -2}, "[-9]"},
		"77 among few ages":             {[]float64{77, 60, 61, 70, 68, 65}, "[]"},
		"99 of a score from 1 to 5":     {[]float64{99, 1, 2, 3, 4, 5}, "[99]"},
		"-9 of yes and no":              {[]float64{-9, 0, 1, 1, 0, 1}, "[-9]"},
		"-9 of a single value":          {[]float64{-9, 1, 1, -9}, "[-9]"},
		"-99 and -9 of yes and no":      {[]float64{-9, -99, 0, 1}, "[-99 -9]"},
		"-1 of yes and no":              {[]float64{-1, 0, 1, -1}, "[]"},
		"-9 beside a sign":              {[]float64{-9, -1, 1}, "[-9]"},
		"-1 of a sign":                  {[]float64{-1, 0, 1}, "[]"},
		"9 of 1 and 2":                  {[]float64{9, 1, 2, 2, 1}, "[9]"},
		"7 and 9 of 1 and 2":            {[]float64{9, 7, 1, 2, 2, 1}, "[9 7]"},
		"99 of 1 and 2":                 {[]float64{99, 1, 2}, "[99]"},
		"9 and 99 of a score to 5":      {[]float64{9, 99, 1, 2, 3, 4, 5}, "[99]"},
		"3, 6 and 7":                    {[]float64{3, 6, 7, 7}, "[]"},
		"two values":                    {[]float64{0, 1, 1, 0, 1}, "[]"},
		"9 of a score from 1 to 5":      {[]float64{9, 1, 2, 3, 4, 5}, "[]"},
		"9 of grades":                   {[]float64{9, 9, 9, 1, 2, 3, 4, 1, 2, 2}, "[9]"},
		"9 of a score to 5, thrice":     {[]float64{9, 9, 9, 1, 2, 3, 4, 5}, "[9]"},
		"8 of counts from 1 to 5":       {[]float64{8, 8, 8, 1, 1, 1, 2, 2, 3, 4, 5}, "[]"},
		"7 of a score to 5, thrice":     {[]float64{7, 7, 7, 1, 2, 3, 4, 5}, "[]"},
		"9 of counts with gaps":         {[]float64{9, 9, 9, 0, 1, 2, 4, 5}, "[]"},
		"values that differ in nothing": {[]float64{-9, -9, -9}, "[]"},
	} {
		s := oneColumn(t, c.values)
		if got := fmt.Sprint(s.Views[0].Features[0].Codes()); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestBareZeros(t *testing.T) {
	numbers := func(from, step float64, more ...float64) []float64 {
		for i := range 30 {
			more = append(more, from+step*float64(i))
		}
		return more
	}
	for name, c := range map[string]struct {
		values []float64
		want   int64
	}{
		"blood pressures": {numbers(80, 2, 0, 0, 0), 3}, "one zero": {numbers(80, 2, 0), 0},
		"counts":       {numbers(1, 1, 0, 0), 0},
		"years smoked": {numbers(3, 1, 0, 0, 0, 0), 0}, "below detection": {numbers(2, 0.1, 0, 0), 2},
		"deviations": {numbers(-8, 4, 0, 0), 0}, "no zeros": {numbers(80, 2), 0},
	} {
		s := oneColumn(t, c.values)
		if got := s.Views[0].Features[0].bareZeros(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestOutliersAreCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	normal := func(n int, more ...float64) []float64 {
		for range n {
			more = append(more, rng.NormFloat64())
		}
		return more
	}
	for name, c := range map[string]struct {
		values []float64
		want   int64
	}{
		"none": {normal(1000), 0}, "one": {normal(50, 1e12), 1}, "two together": {normal(50, 1e12, 1e12), 2},
		"both ends": {normal(60, -1e6, 1e12), 2},
		"three":     {normal(60, 100, 200, 300), 3}, "too few to say": {normal(5, 1e12), 0},
		"a fifth is no outlier": {normal(8, 1e5, 1e5), 0},
	} {
		s := oneColumn(t, c.values)
		f := s.Views[0].Features[0]
		if got, _ := f.outliers(); got != c.want {
			t.Errorf("%s: %d outliers, want %d", name, got, c.want)
		}
	}
	// Of samples of a normal law, none has an outlier; of a Laplace law neither. The rule
	// asks for a gap of three times the whole range, of which both are far.
	for range 300 {
		laplace := make([]float64, 30)
		for i := range laplace {
			laplace[i] = rng.ExpFloat64() - rng.ExpFloat64()
		}
		for _, values := range [][]float64{normal(30), laplace} {
			s := oneColumn(t, values)
			if n, how := s.Views[0].Features[0].outliers(); n != 0 {
				t.Fatalf("%d outliers, %g: %v", n, how, values)
			}
		}
	}
}

// The ends are those of the sorted values, whatever the order of the rows.
func TestExtremes(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for range 200 {
		var e extremes
		count := map[float64]int64{}
		for range rng.IntN(40) + 1 {
			v := math.Round(8 * rng.NormFloat64())
			e.add(v, 1)
			count[v]++
		}
		var values []float64
		for v := range count {
			values = append(values, v)
		}
		slices.Sort(values)
		for i, low := range e.low {
			if low != (extreme{values[i], count[values[i]]}) {
				t.Fatalf("lowest %d: %v of %v", i, low, count)
			}
		}
		slices.Reverse(values)
		for i, high := range e.high {
			if high != (extreme{values[i], count[values[i]]}) {
				t.Fatalf("highest %d: %v of %v", i, high, count)
			}
		}
		if want := min(edge, len(values)); len(e.low) != want || len(e.high) != want {
			t.Fatalf("%d and %d of %d", len(e.low), len(e.high), len(values))
		}
	}
}

// Codes are looked for in columns of the subjects too, outcomes among them, where all cells hold numbers.
func TestCodesAmongOutcomes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	days := func(int) string { return fmt.Sprintf("%.1f", 40*rng.Float64()) }
	sexes := func(i int) string { return []string{"1", "2"}[i%2] }
	for name, c := range map[string]struct {
		usual func(i int) string
		odd   []string
		want  string
	}{
		"none":    {days, nil, ""},
		"missing": {days, []string{"", "NA"}, ""},
		"a code": {days, []string{"999", "", "999.0"},
			"subjects, column y: 999, at 2 of 202 subjects, looks like a code"},
		"a negative code":  {days, []string{"-9"}, "subjects, column y: -9, at 1 of 201 subjects"},
		"a word beside it": {days, []string{"999", "unknown"}, ""},
		"two classes":      {sexes, nil, ""},
		"three classes":    {sexes, []string{"3"}, ""},
		"a class unknown":  {sexes, []string{"9", "9"}, "subjects, column y: 9, at 2 of 202 subjects"},
	} {
		var rows []Row
		for i := range 200 + len(c.odd) {
			cell := c.usual(i)
			if i >= 200 {
				cell = c.odd[i-200]
			}
			rows = append(rows, Row{ID: fmt.Sprintf("s%04d", i), Views: [][]float64{{rng.Float64()}},
				Subject: []string{cell}})
		}
		table := testkit.Get(NewTable(Schema{Subject: []Column{{Name: "y"}},
			Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}, rows))(t)
		if got := describe(t, table).Doubts().Error(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// What one person was measured is in no message; codes and counts are.
func TestDoubtsQuoteNoMeasurement(t *testing.T) {
	s := oneColumn(t, append([]float64{123456.75, -99}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
		19, 20, 21, 22))
	if got := s.Doubts().Error(); !strings.Contains(got, "-99, at 1 of 24 subjects, looks like a code") ||
		strings.Contains(got, "123456") {
		t.Errorf("got %s", got)
	}
	alone := oneColumn(t, []float64{123456.75})
	if got := alone.Warnings().Lines(); len(got) != 1 || strings.Contains(got[0], "123456") ||
		!strings.Contains(got[0], "subjects: there is only one: without privacy") {
		t.Errorf("got %s", got)
	}
	two := oneColumn(t, []float64{123456.75, 123456.75})
	if got := two.Warnings().Error(); strings.Contains(got, "123456") ||
		!strings.Contains(got, "is constant here, at 2 of the subjects") || !strings.Contains(got, "there are only 2") {
		t.Errorf("got %s", got)
	}
}

func TestIDsWrittenDifferently(t *testing.T) {
	for name, c := range map[string]struct{ subjects, ids, want string }{
		"capitals":     {"p1 p2 p3", "P1 P2 P3", "P1 here may be p1 there"},
		"zeros":        {"P1 P2 P10", "P001 P002 P010", "P001 here may be P1 there"},
		"letters":      {"1 2 3", "s1 s2 s3", "s1 here may be 1 there"},
		"one of three": {"p1 p2 p3", "p1 p2 P03", "P03 here may be p3 there"},
		"fractions":    {"1 2 10", "1.0 2.0 10.0", "1.0 here may be 1 there"},
		"signs":        {"ab-1 ab-2", "ab_1 ab_2", "ab_1 here may be ab-1 there"},
		"invisible":    {"a1 a2 b1", "a1 a2 \ufeffb1", `"\ufeffb1" here may be "b1" there`},
		"others":       {"a b c", "a b d", "is not in subjects.csv"},
	} {
		dir := folder(t, map[string]string{"subjects.csv": subjects(strings.Fields(c.subjects)...),
			"view_v.csv": "id,x\n" + strings.Join(strings.Fields(c.ids), ",1\n") + ",2\n"})
		d, err := Open(t.Context(), dir, Options{})
		if err == nil {
			_, err = Count(t.Context(), d)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "hint:") != 1 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSkewedFeaturesAreNamed(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int, next func() float64) (values []float64) {
		for range n {
			values = append(values, next())
		}
		return values
	}
	for name, c := range map[string]struct {
		values []float64
		want   bool
	}{
		"log-normal": {draw(200, func() float64 { return math.Exp(1.2 * rng.NormFloat64()) }), true},
		"counts of rare events": {draw(400, func() float64 {
			return math.Floor(rng.ExpFloat64() * rng.ExpFloat64() * 4)
		}), true},
		"normal":           {draw(200, func() float64 { return 50 + 10*rng.NormFloat64() }), false},
		"standardised":     {draw(200, rng.NormFloat64), false},
		"uniform from 0":   {draw(200, rng.Float64), false},
		"a rare condition": {draw(200, func() float64 { return math.Floor(rng.Float64() + 0.05) }), false},
		"few values":       {draw(12, func() float64 { return math.Exp(2 * rng.NormFloat64()) }), false},
	} {
		got := strings.Contains(oneColumn(t, c.values).Shapes().Error(), "skewed")
		if got != c.want {
			t.Errorf("%s: skewed: %v", name, got)
		}
	}
}

// Values below a limit of detection, and at the end of a scale, are counted.
func TestValuesAtOneEndAreCounted(t *testing.T) {
	var rng *rand.Rand // each case has its own: they come in any order
	for name, c := range map[string]struct {
		next func() float64
		want string
	}{
		"limit of detection": {func() float64 { return max(rng.NormFloat64(), 0.5) }, "at one end: x (lowest: "},
		"test with 30 points": {func() float64 { return min(30, math.Round(28+2*rng.NormFloat64())) },
			"at one end: x (highest: "},
		"rare amounts": {func() float64 { return max(0, math.Round(100*(rng.Float64()-0.5))) },
			"at one end: x (lowest: "},
		"normal, rounded": {func() float64 { return math.Round(10 + 3*rng.NormFloat64()) }, ""},
		"years of entry":  {func() float64 { return 2000 + float64(rng.IntN(8)) }, ""},
		"seven points":    {func() float64 { return float64(1 + rng.IntN(7)*rng.IntN(2)) }, ""},
		"yes or no":       {func() float64 { return math.Round(rng.Float64()) }, ""},
	} {
		rng = rand.New(rand.NewPCG(1, 3))
		var values []float64
		for range 200 {
			values = append(values, c.next())
		}
		if got := oneColumn(t, values).Warnings().Error(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Gaps that were filled in with a mean, or with those of two groups, are counted to within a few.
func TestRepeatedValuesAreCounted(t *testing.T) {
	var rng *rand.Rand // each case has its own: they come in any order
	filled := func(share float64, by ...float64) func() float64 {
		return func() float64 {
			if rng.Float64() < share {
				return by[rng.IntN(len(by))]
			}
			return 10 + 3*rng.NormFloat64()
		}
	}
	for name, c := range map[string]struct {
		next func() float64
		want bool
	}{
		"a mean":        {filled(0.4, 10.02), true},
		"few means":     {filled(0.2, 10.02), true},
		"of two groups": {filled(0.5, 8.91, 11.3), true},
		"of whole numbers": {func() float64 {
			return []float64{math.Round(10 + 3*rng.NormFloat64()), 10.137}[rng.IntN(2)]
		}, true},
		"usual hours": {func() float64 { return []float64{5 * float64(1+rng.IntN(16)), 40}[rng.IntN(2)] },
			false},
		"hardly any":         {filled(0.05, 10.02), false},
		"complete":           {func() float64 { return rng.NormFloat64() }, false},
		"rounded":            {func() float64 { return math.Round(10 + 3*rng.NormFloat64()) }, false},
		"rounded much":       {func() float64 { return math.Round(10 + rng.NormFloat64()) }, false},
		"a scale of seven":   {func() float64 { return float64(rng.IntN(7)) }, false},
		"limit of detection": {func() float64 { return max(rng.NormFloat64(), 0.5) }, false},
		"digit preference":   {func() float64 { return 5 * math.Round((120+15*rng.NormFloat64())/5) }, false},
	} {
		rng = rand.New(rand.NewPCG(1, 4))
		for _, n := range []int{60, 400} {
			count, values := map[float64]int{}, []float64(nil)
			most := 0
			for range n {
				v := c.next()
				values = append(values, v)
				count[v]++
				most = max(most, count[v])
			}
			_, says, _ := strings.Cut(oneColumn(t, values).Doubts().Error(), "others lie below and above: x (at least ")
			var said int
			fmt.Sscanf(says, "%d of", &said)
			if c.want != (said > 0) || said > most || c.want && float64(said) < 0.9*float64(most) {
				t.Errorf("%s, %d values: %d, and %d are the same", name, n, said, most)
			}
		}
	}
}

// Values beyond the plan's range are counted, with what becomes of them, and a range that is far too
// wide is named.
func TestValuesBeyondTheRangeAreCounted(t *testing.T) {
	for low, want := range map[float64]string{
		-1e4: "less than a tenth of the plan's range: x",
		-10:  "",
		1:    "",
		2:    "values lie beyond the plan's range, and are left out: x (2 of 100)",
	} {
		var rows []Row
		for i := range 100 {
			rows = append(rows, Row{ID: fmt.Sprintf("s%04d", i),
				Views: [][]float64{{float64(i) + 0.5*float64(min(i, 1))}}})
		}
		table := testkit.Get(
			NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x", Range: &[2]float64{low, 200}}}}},
				BeyondRange: "and are left out"}, rows))(t)
		if got := fmt.Sprint(describe(t, table).Doubts()); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("range from %v: %s", low, got)
		}
	}
}

// Ids of visits are noted, and not those of people who came once: numbers, names of places or centres before
// them, dates, or a few pairs among many.
func TestIDsOfVisits(t *testing.T) {
	for name, c := range map[string]struct {
		id   func(i int) string
		want string
	}{
		"visits": {func(i int) string { return fmt.Sprintf("p%03d-%d", i/2, 1+i%2) },
			"60 of 60 have ids that are alike but for their endings, such as p000-1 and p000-2"},
		"some": {func(i int) string {
			if i < 20 {
				return fmt.Sprintf("p%03d_v%d", i/4, i%4)
			}
			return fmt.Sprintf("p%03d", i)
		}, "20 of 60 have"},
		"capitals": {func(i int) string { return fmt.Sprintf("%c%03d", 'S'+32*(i/59), i%59) },
			`ids that differ from another only in spelling: 1 of 60, such as "s000"`},
		"numbers":     {func(i int) string { return fmt.Sprintf("%04d", i) }, ""},
		"a country":   {func(i int) string { return fmt.Sprintf("UK-%03d", i) }, ""},
		"countries":   {func(i int) string { return fmt.Sprintf("%c-%03d", 'A'+i/5, i) }, ""},
		"centres":     {func(i int) string { return fmt.Sprintf("%02d-%03d", i/20, i) }, ""},
		"long":        {func(i int) string { return fmt.Sprintf("p%02d-%05d", i/5, i) }, ""},
		"three pairs": {func(i int) string { return fmt.Sprintf("p%03d-%d", min(i, 56), max(0, i-56)) }, ""},
	} {
		var rows []Row
		for i := range 60 {
			rows = append(rows, Row{ID: c.id(i), Views: [][]float64{{float64(i)}}, Subject: []string{}})
		}
		table, err := NewTable(Schema{Views: []View{{Name: "v", Columns: []Column{{Name: "x"}}}}}, rows)
		if err != nil {
			t.Fatal(name, err)
		}
		s := testkit.Get(Describe(t.Context(), table))(t)
		if said := s.Doubts().Error(); c.want == "" && strings.Contains(said, "alike but") ||
			!strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
	}
}
