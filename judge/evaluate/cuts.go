package evaluate

import (
	"fmt"
	"math"
	"sort"
)

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
