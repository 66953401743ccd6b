package evaluate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"parley/dataset"
)

// Times make an outcome the time until an event, in periods: its column then says whether
// that was the event, and this one when. Both levels are there: no event until that time, and
// the event.
type Times struct {
	Column string
	Cuts   Cuts
}

// Columns names the subject columns that the outcome is known from.
func (o Outcome) Columns() []string {
	if o.Times != nil {
		return []string{o.Times.Column, o.Column}
	}
	return []string{o.Column}
}

// observed is what a row says of its outcome.
type observed struct {
	value   float64 // the place of its level, or a number
	time    float64
	periods int  // that a subject counts in: see [Cuts.Seen]
	failed  bool // in the last of them
}

// reader reads outcomes of a schema's rows. An error quotes the cell.
func (o Outcome) reader(s dataset.Schema) (func(row *dataset.Row) (observed, error), error) {
	column, err := o.column(s, o.Column)
	if err != nil || o.Times == nil {
		return func(row *dataset.Row) (y observed, err error) {
			y.value, err = o.Value(row.Subject[column])
			return y, err
		}, err
	}
	when, err := o.column(s, o.Times.Column)
	number := Outcome{Column: o.Times.Column}
	return func(row *dataset.Row) (y observed, err error) {
		if y.value, err = o.Value(row.Subject[column]); err == nil {
			y.time, err = number.Value(row.Subject[when])
		}
		if err == nil {
			y.periods, y.failed, err = o.Times.Cuts.Seen(y.time, y.value == 1)
		}
		return y, err
	}, err
}

// Read says whether a row's outcome can be read, and otherwise what is wrong with it.
func (o Outcome) Read(s dataset.Schema, row *dataset.Row) error {
	read, err := o.reader(s)
	if err == nil {
		_, err = read(row)
	}
	return err
}

// period adds up what was said of a subject who counts in some periods: the probability of
// being seen through them, or of the event in the last. Every period that was begun counts
// among the frequencies.
func (t *tally) period(y observed, logSurvival []float64) error {
	last := 0.0
	for k, l := range logSurvival {
		if math.IsNaN(l) || l > 1e-9 {
			return fmt.Errorf("the logarithm of survival until %v is %v", t.outcome.Times.Cuts[k], l)
		}
		if k >= y.periods {
			break
		}
		l = min(l, last)
		hazard, failed := -math.Expm1(l-last), y.failed && k == y.periods-1
		if math.IsInf(last, -1) { // nobody was to come so far
			hazard = 1
		}
		t.bins.Add(hazard, failed)
		if failed {
			t.logLik += last + math.Log(hazard)
		} else if k == y.periods-1 {
			t.logLik += l
		}
		last = l
	}
	t.survival, t.times = append(t.survival, logSurvival[len(logSurvival)-1]), append(t.times, y)
	return nil
}

// concordance is Harrell's: of all pairs of subjects of whom it is known who had the event
// first, the share in which that one was given less survival, ties counting one half
// (Harrell and others, JAMA 1982). Of subjects with the same time one with the event came
// before one without. NaN where there is no such pair, or a survival is none.
func concordance(survival []float64, y []observed) float64 {
	order := make([]int, len(y))
	for i := range order {
		order[i] = i
	}
	rank := slices.Clone(survival)
	slices.Sort(rank)
	rank = slices.Compact(rank)
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(y[b].time, y[a].time) }) // the longest first
	later := make([]int, len(rank)+1)                                                       // a Fenwick tree: how many of each survival are known to be later
	add := func(i int) {
		for i++; i <= len(rank); i += i & -i {
			later[i]++
		}
	}
	below := func(i int) (n int) { // of a survival in the first i places
		for ; i > 0; i -= i & -i {
			n += later[i]
		}
		return n
	}
	place := func(i int) int { at, _ := slices.BinarySearch(rank, survival[i]); return at }
	right, pairs, known := 0.0, 0.0, 0
	for at := 0; at < len(order); {
		end := at
		for end < len(order) && y[order[end]].time == y[order[at]].time {
			if i := order[end]; math.IsNaN(survival[i]) {
				return math.NaN()
			} else if y[i].value != 1 {
				add(place(i))
				known++
			}
			end++
		}
		for _, i := range order[at:end] {
			if y[i].value == 1 {
				p := place(i)
				ties := below(p+1) - below(p)
				right += float64(known-below(p+1)) + float64(ties)/2
				pairs += float64(known)
			}
		}
		for _, i := range order[at:end] {
			if y[i].value == 1 {
				add(place(i))
				known++
			}
		}
		at = end
	}
	return right / pairs
}

// lifeTable counts, in every period, who was seen in it and who had the event.
type lifeTable struct{ seen, failed []float64 }

func newLifeTable(periods int) *lifeTable {
	return &lifeTable{make([]float64, periods), make([]float64, periods)}
}

func (t *lifeTable) add(y observed) {
	for k := range y.periods {
		t.seen[k]++
		if y.failed && k == y.periods-1 {
			t.failed[k]++
		}
	}
}

// logSurvival is the product of what is left, as if one subject more had been seen through
// each period and one more not, so that nothing is impossible.
func (t *lifeTable) logSurvival() (out []float64) {
	log := 0.0
	for k, n := range t.seen {
		log += math.Log1p(-(t.failed[k] + 1) / (n + 2))
		out = append(out, log)
	}
	return out
}

// Cuts divide the time since a subject's start by public cuts c₁ < … < c_K: period k
// is (c_{k−1}, c_k], the first one begins at 0. A discrete-time hazard model (Singer and
// Willett, J Educ Stat 1993) is a logistic model of person-periods: one row for each
// period that a subject was seen in, with outcome +1 in that of the event and −1
// otherwise, and a coefficient for each period in place of the intercept.
type Cuts []float64

// Check reports cuts that do not ascend from above 0, or are not finite.
func (p Cuts) Check() error {
	if len(p) == 0 {
		return fmt.Errorf("no cuts: want the ends of the periods, such as [30, 60, 90]")
	}
	last := 0.0
	for _, c := range p {
		if !(c > last) || math.IsInf(c, 1) {
			return fmt.Errorf("a cut at %v after %v: want finite times above 0 that ascend", c, last)
		}
		last = c
	}
	return nil
}

// Seen returns the number of periods that a subject counts in, and whether the event was
// in the last of them. Somebody who was followed until time without an event counts in
// the period of that time if it was seen through at least half (Gensheimer and
// Narasimhan, PeerJ 2019), which leaves hazards unbiased to first order; an event after
// the last cut is none before it. A time is not negative.
func (p Cuts) Seen(time float64, event bool) (periods int, failed bool, err error) {
	if !(time >= 0) || math.IsInf(time, 1) {
		return 0, false, fmt.Errorf("the time %v is negative or not finite", time)
	}
	k := sort.SearchFloat64s(p, time) // the first cut at or after time
	switch {
	case k == len(p):
		return k, false, nil
	case event:
		return k + 1, true, nil
	}
	begin := 0.0
	if k > 0 {
		begin = p[k-1]
	}
	if time >= begin+(p[k]-begin)/2 {
		k++
	}
	return k, false, nil
}

// Names names the periods by their ends: (0, 30], (30, 60].
func (p Cuts) Names() (names []string) {
	last := 0.0
	for _, c := range p {
		names = append(names, fmt.Sprintf("(%v, %v]", last, c))
		last = c
	}
	return names
}
