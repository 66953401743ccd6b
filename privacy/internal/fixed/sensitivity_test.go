package fixed

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"parley/internal/testkit"
)

// summer adds up a data set in integers, as [Sum] does before the noise.
type summer func(g Grid, records [][]float64) []int64

func right(g Grid, records [][]float64) []int64 {
	s, err := NewSum(g, []int{len(records[0])}, 10)
	if err != nil {
		panic(err)
	}
	for _, v := range records {
		if err := s.Add(0, v); err != nil {
			panic(err)
		}
	}
	return s.sums[0]
}

// distance is the squared norm of a difference of sums (l1: not squared), in
// which an entry beside the diagonal of moments stands for two.
func distance(g Grid, a, b []int64) *big.Int {
	total := new(big.Int)
	at, row := 0, 0 // of the next entry on the diagonal
	d := int(math.Sqrt(float64(2 * len(a))))
	for i := range a {
		x := new(big.Int).Sub(big.NewInt(a[i]), big.NewInt(b[i]))
		if g.Norm == L2 {
			x.Mul(x, x)
		}
		x.Abs(x)
		switch {
		case g.Form == Vectors:
		case i == at:
			at += d - row
			row++
		default:
			x.Lsh(x, 1)
		}
		total.Add(total, x)
	}
	return total
}

// allowed is the bound on distance: what [Grid] and the accountant agree on.
func allowed(g Grid, replace bool) *big.Int {
	limit := big.NewInt(g.Limit)
	if g.Form == Moments {
		limit.Mul(limit, limit)
	}
	factor := int64(1)
	switch {
	case !replace:
	case g.Form == Moments:
		factor = 2 // (√2)²
	case g.Norm == L1:
		factor = 2
	default:
		factor = 4
	}
	if g.Norm == L2 {
		limit.Mul(limit, limit)
	}
	return limit.Mul(limit, big.NewInt(factor))
}

// record draws a vector that is hard to handle: of any size, on the boundary,
// with entries just above half a step, along an axis, or not finite.
func record(r *rand.Rand, g Grid, d int) []float64 {
	v := make([]float64, d)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	step := g.Bound / float64(g.Limit)
	switch r.IntN(9) {
	case 0:
	case 1:
		scale := math.Exp(1400 * (r.Float64() - 0.5))
		for i := range v {
			v[i] = max(min(v[i]*scale, math.MaxFloat64), -math.MaxFloat64)
		}
	case 2: // on the boundary, one way or the other by some ulps
		n := 0.0
		for _, x := range v {
			if g.Norm == L1 {
				n += math.Abs(x)
			} else {
				n = math.Hypot(n, x)
			}
		}
		for i := range v {
			v[i] *= g.Bound / n * (1 + float64(r.IntN(9)-4)*1e-16)
		}
	case 3: // every entry is rounded up, from within the bound
		root := float64(d)
		if g.Norm == L2 {
			root = math.Sqrt(root)
		}
		for i := range v {
			v[i] = math.Copysign((math.Floor(float64(g.Limit)/root)-float64(r.IntN(2))+0.5000001)*step, v[i])
		}
	case 4: // along an axis
		clear(v)
		v[r.IntN(d)] = math.Copysign(g.Bound*(1+r.Float64()), r.Float64()-0.5)
	case 5:
		v[r.IntN(d)] = []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
	case 6: // huge beside tiny
		v[r.IntN(d)] = math.MaxFloat64
	case 7: // below half a step
		for i := range v {
			v[i] *= step
		}
	case 8:
		clear(v)
	}
	return v
}

// opposite draws the worst neighbour of v: −v, or an orthogonal vector.
func opposite(r *rand.Rand, v []float64) []float64 {
	w := slices.Clone(v)
	for i := range w {
		w[i] = -v[i]
	}
	if len(v) > 1 && r.IntN(2) == 0 {
		clear(w)
		i := r.IntN(len(v) - 1)
		w[i], w[i+1] = v[i+1], -v[i]
	}
	return w
}

// violation looks for neighbours whose sums are further apart than allowed:
// random, extreme, and chosen against the form.
func violation(sum summer, g Grid, limit func(g Grid, replace bool) *big.Int) error {
	r := rand.New(rand.NewPCG(4, uint64(g.Limit)))
	for i := range 2000 {
		d := 1 + r.IntN(6)
		if i%50 == 0 {
			d = 60
		}
		data := [][]float64{record(r, g, d), record(r, g, d)}
		one := record(r, g, d)
		two := record(r, g, d)
		if r.IntN(2) == 0 {
			two = opposite(r, one)
		}
		with := func(v ...[]float64) []int64 { return sum(g, append(slices.Clone(data), v...)) }
		if got, want := distance(g, with(one), with()), limit(g, false); got.Cmp(want) > 0 {
			return fmt.Errorf("with or without %v: distance %v, above %v", one, got, want)
		}
		if got, want := distance(g, with(one), with(two)), limit(g, true); got.Cmp(want) > 0 {
			return fmt.Errorf("%v or %v: distance %v, above %v", one, two, got, want)
		}
	}
	return nil
}

func grids(t *testing.T) (all []Grid) {
	for _, kind := range kinds {
		for _, c := range [][2]float64{{1, 3}, {math.Pi, 0.01}, {1e-3, 1e-6}, {1e100, 1e-9}} {
			g := testkit.Get(NewGrid(kind.form, kind.norm, c[0], c[1]))(t)
			all = append(all, g)
		}
	}
	return all
}

func TestNoNeighbourMovesASumFurtherThanItsLimit(t *testing.T) {
	for _, g := range grids(t) {
		if err := violation(right, g, allowed); err != nil {
			t.Errorf("%s %s, bound %v: %v", g.Form, g.Norm, g.Bound, err)
		}
	}
}

// The limits are attained, so that a smaller claim is caught: a missing factor
// 2 (√2 for moments) under replace-one, or one per cent off any of them.
func TestSmallerClaimsAreCaught(t *testing.T) {
	for _, g := range grids(t) {
		for name, limit := range map[string]func(Grid, bool) *big.Int{
			"no factor for replacement": func(g Grid, _ bool) *big.Int { return allowed(g, false) },
			"one per cent less": func(g Grid, replace bool) *big.Int {
				x := allowed(g, replace)
				return x.Sub(x, new(big.Int).Quo(x, big.NewInt(100)))
			},
			"replacement one per cent less": func(g Grid, replace bool) *big.Int {
				x := allowed(g, replace)
				if replace {
					x.Sub(x, new(big.Int).Quo(x, big.NewInt(100)))
				}
				return x
			},
		} {
			if violation(right, g, limit) == nil {
				t.Errorf("%s %s, bound %v: %s is not caught", g.Form, g.Norm, g.Bound, name)
			}
		}
	}
}

// Faults that the same search must find, each a plausible piece of code.
func TestFaultySumsAreCaught(t *testing.T) {
	// summed adds up what f makes of each record.
	summed := func(f func(g Grid, v []float64) []int64) summer {
		return func(g Grid, records [][]float64) []int64 {
			total := make([]int64, g.entries(len(records[0])))
			for _, v := range records {
				if q := f(g, slices.Clone(v)); g.Form == Moments {
					addOuter(total, q)
				} else {
					for i, x := range q {
						total[i] += x
					}
				}
			}
			return total
		}
	}
	clipped := func(g Grid, v []float64) []float64 {
		if _, _, err := Clip(v, g.Bound, g.Norm); err != nil {
			clear(v)
		}
		return v
	}
	rounded := func(g Grid, v []float64) []int64 {
		q := make([]int64, len(v))
		for i, x := range v {
			q[i] = int64(math.RoundToEven(x * (float64(g.Limit) / g.Bound)))
		}
		return q
	}
	faults := map[string]summer{
		"clipped after summing": func(g Grid, records [][]float64) []int64 {
			total := make([]float64, len(records[0]))
			for _, v := range records {
				if _, _, err := Clip(slices.Clone(v), g.Bound, g.Norm); err == nil {
					for i, x := range v {
						total[i] += max(min(x/4, 1e300), -1e300)
					}
				}
			}
			return summed(func(g Grid, v []float64) []int64 { return rounded(g, clipped(g, v)) })(g, [][]float64{total})
		},
		"blocks clipped apart": summed(func(g Grid, v []float64) []int64 {
			clipped(g, v[:len(v)/2])
			clipped(g, v[len(v)/2:])
			return rounded(g, v)
		}),
		"rounded after the check": summed(func(g Grid, v []float64) []int64 { return rounded(g, clipped(g, v)) }),
		"not-a-number passes": summed(func(g Grid, v []float64) []int64 {
			n := 0.0
			for _, x := range v {
				n += math.Abs(x) // at least the l2 norm, so finite records are safe
			}
			if n > g.Bound {
				for i := range v {
					v[i] = v[i] / n * g.Bound
				}
			}
			q := rounded(g, v)
			for i, x := range v {
				if x != x {
					q[i] = 1 << 30 // what a conversion makes of it differs between processors
				} else {
					q[i] = int64(x * float64(g.Limit) / g.Bound)
				}
			}
			return q
		}),
		"norm overflows": summed(func(g Grid, v []float64) []int64 {
			n := 0.0
			for _, x := range v {
				n += x * x
			}
			if n = math.Sqrt(n); n > g.Bound && !math.IsInf(n, 1) {
				return rounded(g, clipped(g, v))
			}
			for i, x := range v {
				v[i] = min(max(x, -g.Bound), g.Bound)
			}
			return rounded(g, v)
		}),
	}
	for name, fault := range faults {
		for _, g := range grids(t) {
			if g.Bound == 1 && violation(fault, g, allowed) == nil {
				t.Errorf("%s %s: %s is not caught", g.Form, g.Norm, name)
			}
		}
	}
}
