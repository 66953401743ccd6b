package privacy_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// rowsOfPeople is what each reading of some data yields; the last one again and again.
type rowsOfPeople [][]dataset.Row

func (rowsOfPeople) Schema() dataset.Schema { return dataset.Schema{Person: "who"} }

func (r *rowsOfPeople) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	rows := (*r)[0]
	if len(*r) > 1 {
		*r = (*r)[1:]
	}
	return func(yield func(*dataset.Row, error) bool) {
		for i := range rows {
			if !yield(&rows[i], nil) {
				return
			}
		}
	}
}

// block and vector of a row are its view: the block, then the numbers.
func contribute(row *dataset.Row, v []float64) int {
	if row.Person != "" {
		panic("a method learns whose a row is")
	}
	copy(v, row.Views[0][1:])
	return int(row.Views[0][0])
}

// summed returns the exact sums of rows, of a study that tells persons apart, or takes every row for another.
func summed(t testing.TB, people bool, sum privacy.Sum, readings ...[]dataset.Row) (exact [][]int64) {
	t.Helper()
	var data dataset.Source = (*rowsOfPeople)(&readings)
	own := study
	own.Person = "who"
	if !people {
		own.Person = ""
		data = plainRows{data}
		readings[0] = slices.Clone(readings[0])
		for i := range readings[0] {
			readings[0][i].Person = ""
		}
	}
	g := privacy.NewGate(own, open, sitestore.NewMemory(), data,
		privacytest.Replaced(func(_ string, x [][]int64) [][]int64 {
			for _, b := range x {
				exact = append(exact, slices.Clone(b))
			}
			return x
		}))
	s := testkit.Get(g.AdmitAny(ask, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}))(t)
	testkit.Get(s.Sum(t.Context(), sum.Name, contribute))(t)
	return exact
}

type plainRows struct{ dataset.Source }

func (plainRows) Schema() dataset.Schema { return dataset.Schema{} }

// apart is the squared distance of sums, or of l1 the distance, in which an entry beside the diagonal of moments
// stands for two.
func apart(sum privacy.Sum, a, b [][]int64) *big.Int {
	total := new(big.Int)
	for i := range a {
		at, row := 0, sum.Blocks[i]
		for j := range a[i] {
			x := new(big.Int).Sub(big.NewInt(a[i][j]), big.NewInt(b[i][j]))
			if x.Abs(x); sum.Mechanism.Kind == account.Gaussian {
				x.Mul(x, x)
			}
			if sum.Form == privacy.Moments && j != at {
				x.Lsh(x, 1)
			} else if at += row; sum.Form == privacy.Moments {
				row--
			}
			total.Add(total, x)
		}
	}
	return total
}

var formsOfSums = []privacy.Sum{
	{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2, 5, 3}, Bound: 3,
		Mechanism: mechanism(account.Gaussian, 1, 2)},
	{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2, 5, 3}, Bound: 3,
		Mechanism: mechanism(account.Laplace, 1, 2)},
	{Name: "v", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{2, 5, 3}, Bound: 3,
		Mechanism: mechanism(account.Gaussian, 1, math.Sqrt2)},
}

// somebody has one to five rows that are hard to handle: alike, opposite, huge, tiny, not finite, along an axis, at
// the bound, in one block or several, or in none.
func somebody(r *rand.Rand, name string, sum privacy.Sum) (rows []dataset.Row) {
	block, kind := r.IntN(len(sum.Blocks)), r.IntN(8)
	var last []float64
	for range 1 + r.IntN(5) {
		if r.IntN(3) == 0 {
			block = r.IntN(len(sum.Blocks)+2) - 1
		}
		view := make([]float64, 6)
		for j := range view[1:] {
			view[1+j] = r.NormFloat64() * sum.Bound
		}
		switch kind {
		case 0:
			if last != nil {
				copy(view, last)
			}
		case 1:
			if last != nil {
				for j := range view {
					view[j] = -last[j]
				}
			}
		case 2:
			view[1+r.IntN(5)] = math.MaxFloat64
		case 3:
			for j := range view {
				view[j] *= 1e-12
			}
		case 4:
			view[1+r.IntN(5)] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
		case 5:
			clear(view)
			view[1+r.IntN(2)] = sum.Bound
		}
		last = slices.Clone(view)
		view[0] = float64(block)
		rows = append(rows, dataset.Row{ID: name, Person: name, Views: [][]float64{view}})
	}
	return rows
}

// shuffled mixes the rows of people, of whom each keeps the order of their own.
func shuffled(r *rand.Rand, people ...[]dataset.Row) (rows []dataset.Row) {
	people = slices.Clone(people)
	for {
		people = slices.DeleteFunc(people, func(p []dataset.Row) bool { return len(p) == 0 })
		if len(people) == 0 {
			return rows
		}
		i := r.IntN(len(people))
		rows, people[i] = append(rows, people[i][0]), people[i][1:]
	}
}

// Whoever comes, goes, or is exchanged for somebody, with however many rows and wherever these stand, the exact sums
// move by no more than is charged for, and that is not charged too much. They are those of each person alone.
func TestAPersonMovesASumByNoMoreThanIsCharged(t *testing.T) {
	for _, sum := range formsOfSums {
		r := rand.New(rand.NewPCG(3, uint64(sum.Mechanism.Diameter*100)))
		limit := new(big.Float).SetFloat64(sum.Bound / sum.Step())
		if sum.Form == privacy.Moments {
			limit.SetFloat64(sum.Bound * sum.Bound / sum.Step())
		}
		most, _ := limit.Int(nil)
		replaced := new(big.Int).Lsh(most, 1) // l1
		if sum.Mechanism.Kind == account.Gaussian {
			most = new(big.Int).Mul(most, most)
			replaced = new(big.Int).Mul(most, big.NewInt(
				int64(math.Round(sum.Mechanism.Diameter*sum.Mechanism.Diameter))))
		}
		ratio := func(a, b *big.Int) float64 { f, _ := new(big.Rat).SetFrac(a, b).Float64(); return f }
		added, exchanged := 0.0, 0.0
		for range 1500 {
			a, b, other := somebody(r, "a", sum), somebody(r, "b", sum), somebody(r, "a", sum)
			if r.IntN(2) == 0 { // the worst there is
				other = nil
				for _, row := range a {
					view := slices.Clone(row.Views[0])
					for j := range view[1:] {
						view[1+j] = -view[1+j]
					}
					if sum.Form == privacy.Moments {
						view[1], view[2] = -view[2], view[1]
					}
					other = append(other, dataset.Row{Person: "a", Views: [][]float64{view}})
				}
			}
			nobody := somebody(r, "", sum)
			with, without := summed(t, true, sum, shuffled(r, a, b, nobody)),
				summed(t, true, sum, shuffled(r, b, nobody))
			exchange := summed(t, true, sum, shuffled(r, other, b, nobody))
			added, exchanged = max(added, ratio(apart(sum, with, without), most)),
				max(exchanged, ratio(apart(sum, with, exchange), replaced))
			for _, block := range summed(t, true, sum, nobody) {
				if slices.ContainsFunc(block, func(x int64) bool { return x != 0 }) {
					t.Fatalf("%s: rows without a person give %v", sum.Form, block)
				}
			}
			alone := summed(t, true, sum, a)
			for i := range alone {
				for j := range alone[i] {
					if with[i][j] != without[i][j]+alone[i][j] {
						t.Fatalf("%s: the sum of two persons is not what each gives alone", sum.Form)
					}
				}
			}
			few := slices.Clone(a) // rows that nothing clips add up
			var apart [][]int64
			for i := range few {
				view := slices.Clone(few[i].Views[0])
				for j := range view[1:] {
					view[1+j] = 0.05 * max(-1, min(1, view[1+j]))
				}
				few[i].Views = [][]float64{view}
				for b, block := range summed(t, false, sum, few[i:i+1]) {
					if i == 0 {
						apart = append(apart, make([]int64, len(block)))
					}
					for j, x := range block {
						apart[b][j] += x
					}
				}
			}
			for b, block := range summed(t, true, sum, few) {
				for j, x := range block {
					if d := x - apart[b][j]; d > 5 || d < -5 {
						t.Fatalf("%s: rows of a person that nothing clips give %d, and each by itself %d in all",
							sum.Form, x, apart[b][j])
					}
				}
			}
			if len(a) == 1 && fmt.Sprint(alone) != fmt.Sprint(summed(t, false, sum, a)) {
				t.Fatalf("%s: the only row of a person counts as %v, and a row as %v", sum.Form, alone,
					summed(t, false, sum, a))
			}
		}
		if added > 1 || exchanged > 1 || added < 0.99 || exchanged < 0.95 {
			t.Errorf("%s, %s noise: a person more moves a sum by %v of what is charged, and one exchanged by %v",
				sum.Form, sum.Mechanism.Kind, added, exchanged)
		}
	}
}

// A person is in a sample with all rows or with none, as often as the rate says.
func TestAPersonIsSampledOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	sum := formsOfSums[0]
	sum.Mechanism.Rate = 0.1
	var people [][]dataset.Row
	for i := range 10_000 {
		people = append(people, somebody(r, fmt.Sprint("p", i), sum))
	}
	own := study
	own.Person = "who"
	g := privacy.NewGate(own, open, sitestore.NewMemory(), &rowsOfPeople{shuffled(r, people...)}, privacytest.Seeded(2))
	s := testkit.Get(g.AdmitAny(ask, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}))(t)
	seen := map[string]int{}
	testkit.Get(s.Sum(t.Context(), sum.Name, func(row *dataset.Row, v []float64) int { seen[row.ID]++; return -1 }))(t)
	for i, rows := range people {
		if n := seen[fmt.Sprint("p", i)]; n != 0 && n != len(rows) {
			t.Fatalf("%d of the %d rows of a person are in the sample", n, len(rows))
		}
	}
	if math.Abs(float64(len(seen))-1000) > 5*30 {
		t.Errorf("%d persons of 10 000 took part at a rate of 0.1", len(seen))
	}
}

// If the data change between two readings, still nobody is two records; and a study that tells persons apart reads
// no data that do not.
func TestChangedDataMakeNobodyTwo(t *testing.T) {
	sum := formsOfSums[0]
	row := func(who string) dataset.Row {
		return dataset.Row{Person: who, Views: [][]float64{{0, sum.Bound, 0, 0, 0, 0}}}
	}
	a, b := row("a"), row("b")
	one := summed(t, true, sum, []dataset.Row{a})
	for _, x := range []struct {
		first, then []dataset.Row
		persons     int64
	}{
		{[]dataset.Row{a, b}, []dataset.Row{a, b, a, a, b}, 2},
		{[]dataset.Row{a, b, a, b}, []dataset.Row{a, a}, 1},
		{[]dataset.Row{b, b, a, b}, []dataset.Row{a, a, b, a, a, b}, 2},
		{[]dataset.Row{a}, []dataset.Row{row("c"), a}, 0},
	} {
		if got := summed(t, true, sum, x.first, x.then)[0][0]; got != x.persons*one[0][0] {
			t.Errorf("%d rows and then %d: a sum of %v persons, want %d", len(x.first), len(x.then),
				float64(got)/float64(one[0][0]), x.persons)
		}
	}
	own := study
	own.Person = "who"
	g := privacy.NewGate(own, open, sitestore.NewMemory(), subjects(3))
	s := testkit.Get(g.AdmitAny(ask, privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{sum}}))(t)
	if _, err := s.Sum(t.Context(), sum.Name, contribute); err == nil || !strings.Contains(err.Error(), `"who"`) {
		t.Errorf("data without persons were summed: %v", err)
	}
}
