package method

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Of 500 drawn tables of small counts, at two or three sites and with or without outcomes, no small cell is shown, and
// for each there are two sets of counts, none negative, that readers cannot tell apart by what is shown and by the
// sizes of groups, and of which the cell differs: by one, as do others, at most.
func TestTablesOfPeopleGiveNoSmallCellAway(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 7))
	hidden := 0
	for range 500 {
		sites, outcomes, levels := 2+r.IntN(2), 2*r.IntN(2), 2
		b := &Baseline{Sites: make([]string, sites), Outcomes: make([]string, outcomes),
			Sizes: make([]float64, sites+outcomes+1)}
		counts := make([][]float64, levels)
		for l := range counts {
			counts[l] = make([]float64, len(b.Sizes))
		}
		all := len(b.Sizes) - 1
		for s := range sites {
			for l := range levels + 1 { // the last lack it
				for range []int{0, 1, 2, 4, 6, 7}[r.IntN(6)] {
					at := []int{s, all}
					if outcomes > 0 {
						at = append(at, sites+r.IntN(outcomes))
					}
					for _, g := range at {
						b.Sizes[g]++
						if l < levels {
							counts[l][g]++
						}
					}
				}
			}
		}
		b.Category("c", []string{"x", "y"}, counts)
		shown, _ := b.shown()
		few := b.few(&b.features[0], shown)
		cells := append(slices.Clone(counts), b.lacking(&b.features[0]))
		t1 := b.Table()
		for i, g := range shown {
			text := t1.Columns[2+i].Text[1 : 1+levels] // below the number of subjects
			if slices.ContainsFunc(few, func(row []bool) bool { return row[g] }) &&
				strings.Contains(strings.Join(text, ""), "%") {
				t.Fatalf("%v of %v: shares of %d tell how many are hidden: %q", few, cells, g, text)
			}
		}
		for l, row := range few {
			for g, h := range row {
				if n := cells[l][g]; n > 0 && n < fewestShown && !h {
					t.Fatalf("%v of %v: a cell of %v is shown", few, cells, n)
				} else if n > 0 && n < fewestShown {
					if hidden++; !open(b, cells, few, l, g) {
						t.Fatalf("%v of %v, groups of %v: the cell %d, %d follows", few, cells, b.Sizes, l, g)
					}
				}
			}
		}
	}
	if hidden < 500 {
		t.Errorf("only %d small cells", hidden)
	}
}

// open says whether counts other than those of a table, with another one in the given cell, agree with all that is
// shown.
func open(b *Baseline, cells [][]float64, few [][]bool, l, g int) bool {
	groups, all := len(b.Sizes), len(b.Sizes)-1
	x := slices.Concat(cells...)
	var free []int
	for i := range x {
		if few[i/groups][i%groups] {
			free = append(free, i)
		}
	}
	agrees := func() bool {
		for r := range cells {
			row, s := x[r*groups:][:groups], 0.0
			for _, n := range row[:len(b.Sites)] {
				s += n
			}
			o := row[all]
			if len(b.Outcomes) > 0 {
				o = 0
				for _, n := range row[len(b.Sites):all] {
					o += n
				}
			}
			if s != row[all] || o != row[all] {
				return false
			}
		}
		return true
	}
	var search func(k int) bool
	search = func(k int) bool {
		if k == len(free) {
			return x[l*groups+g] != cells[l][g] && agrees()
		}
		i := free[k]
		rest := b.Sizes[i%groups]
		last := !slices.ContainsFunc(free[k+1:], func(j int) bool { return j%groups == i%groups }) // of its group
		for r := range cells {
			if j := r*groups + i%groups; j != i && !slices.Contains(free[k+1:], j) {
				rest -= x[j]
			}
		}
		kept := x[i]
		defer func() { x[i] = kept }()
		for n := max(kept-1, 0); n <= kept+1; n++ {
			if x[i] = n; (!last || n == rest) && search(k+1) {
				return true
			}
		}
		return false
	}
	return search(0)
}

// A mean is shown of five people on, of an indicator where either value has as many, and never where a difference gives
// it.
func TestMeansOfFewAreNotShown(t *testing.T) {
	nan := math.NaN()
	b := &Baseline{Sites: []string{"a", "b", "c"}, Outcomes: []string{"y = no", "y = yes"},
		Sizes: []float64{40, 60, 50, 100, 50, 150}}
	b.Number("age", "years", []float64{40, 60, 3, nan, nan, 103}, []float64{61.234, 70, 44, nan, nan, 66},
		[]float64{10.04, 9.6, 8, nan, nan, 11.2})
	sd := func(n, p float64) float64 { return math.Sqrt(n * p * (1 - p) / (n - 1)) }
	b.Number("smoker", "", []float64{40, 60, 50, 100, 50, 150}, []float64{.05, .3, .5, .3, .34, 47. / 150},
		[]float64{sd(40, .05), sd(60, .3), sd(50, .5), nan, nan, sd(150, 47./150)})
	table := b.Table()
	var text strings.Builder
	if err := table.CSV(&text); err != nil {
		t.Fatal(err)
	}
	const want = `,,a,b,c,y = no,y = yes,all
subjects,,40,60,50,100,50,150
"age, years",mean ± sd,–,70.0 ± 9.6,–,,,66.0 ± 11.2
,missing,–,0,–,,,47 (31.3 %)
smoker,mean ± sd,–,–,0.500 ± 0.505,0.300,0.340,0.313 ± 0.465
`
	if text.String() != want {
		t.Errorf("the table is\n%s\nand not\n%s", &text, want)
	}
}
