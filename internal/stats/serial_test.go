package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows that are visits of one person are found, by one number or several, and hardly ever rows that know nothing
// of each other, in any order: of 1000 sets at .01 more than 20 come by chance once in 500 tests.
func TestRowsThatFollowEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		q, sites, rows, visits int
		shared                 float64 // share of variance
		blocks                 int     // rows of a kind, one kind after the other
		heavy                  bool
		found                  bool
	}{
		"one number":        {q: 1, sites: 3, rows: 80, visits: 1},
		"four numbers":      {q: 4, sites: 6, rows: 60, visits: 1},
		"heavy tails":       {q: 2, sites: 3, rows: 100, visits: 1, heavy: true},
		"in blocks":         {q: 2, sites: 2, rows: 200, visits: 1, blocks: 50},
		"in batches of 20":  {q: 2, sites: 2, rows: 200, visits: 1, blocks: 20, found: true},
		"two visits":        {q: 2, sites: 3, rows: 100, visits: 2, shared: 0.6, found: true},
		"families":          {q: 4, sites: 5, rows: 60, visits: 4, shared: 0.4, found: true},
		"two, of one score": {q: 1, sites: 1, rows: 400, visits: 2, shared: 0.6, found: true},
	} {
		said, sets := 0, 1000
		if c.found {
			sets = 100
		}
		for set := range sets {
			r := rand.New(rand.NewPCG(uint64(set), 61))
			var all SerialSums
			for range c.sites {
				var rows []float64
				person := make([]float64, c.q)
				for i := range c.rows {
					for a := range person {
						if i%c.visits == 0 {
							person[a] = r.NormFloat64()
						}
						x := math.Sqrt(c.shared)*person[a] + math.Sqrt(1-c.shared)*r.NormFloat64()
						if c.heavy {
							x /= math.Sqrt(r.ExpFloat64())
						}
						if c.blocks > 0 {
							x += float64(i / c.blocks % 3)
						}
						rows = append(rows, x)
					}
				}
				all.Add(SerialSumsOf(rows, c.q))
			}
			if all.Correlation(0.01) > 0 {
				said++
			}
		}
		t.Logf("%s: %d of %d", name, said, sets)
		if c.found && said < 95 || !c.found && said > 20 {
			t.Errorf("%s: said of %d in %d", name, said, sets)
		}
	}
}

// What sites send says nothing of few rows, and what none can send is refused.
func TestSumsOfFewRowsAndOfNone(t *testing.T) {
	if got := SerialSumsOf(slices.Repeat([]float64{1, 2}, fewest-1), 2); got != (SerialSums{}) {
		t.Errorf("too few rows: %+v", got)
	}
	if got := SerialSumsOf(make([]float64, 200), 1); !got.Usable() || got.Correlation(0.01) != 0 {
		t.Errorf("rows that are all alike: %+v", got)
	}
	for _, s := range []SerialSums{{Next: math.NaN()}, {Own: -1}, {Vary: math.Inf(1)}} {
		if s.Usable() {
			t.Errorf("%+v is taken", s)
		}
	}
}
