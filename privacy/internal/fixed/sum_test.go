package fixed

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/privacy/internal/noise"
)

func grid(t testing.TB, form Form, norm Norm, bound, ratio float64) Grid {
	t.Helper()
	return testkit.Get(NewGrid(form, norm, bound, ratio))(t)
}

func sum(t testing.TB, g Grid, blocks []int, records int64) *Sum {
	t.Helper()
	return testkit.Get(NewSum(g, blocks, records))(t)
}

func add(t testing.TB, s *Sum, block int, v ...float64) {
	t.Helper()
	testkit.Do(t, s.Add(block, v))
}

func release(t testing.TB, s *Sum) [][]int64 {
	t.Helper()
	return testkit.Get(s.Release(noise.Keyed([32]byte{5})))(t)
}

// exactly returns the sums without their noise: what the same noise on an empty
// sum leaves when it is taken away.
func exactly(t testing.TB, s *Sum) [][]int64 {
	t.Helper()
	empty := sum(t, s.grid, s.lengths, 1)
	got := release(t, s)
	for b, added := range release(t, empty) {
		for i, x := range added {
			got[b][i] -= x
		}
	}
	return got
}

func TestSumsInIntegers(t *testing.T) {
	for _, c := range []struct {
		form Form
		norm Norm
		want [][]int64 // in units of 2⁻⁴ of the bound (or its square)
	}{
		{Vectors, L2, [][]int64{{8, 4}, {0, 0, -8}}},
		{Vectors, L1, [][]int64{{8, 4}, {0, 0, -8}}},
		{Moments, L2, [][]int64{{64 + 16, -32 + 32, 16 + 64}, {16, 16, 32, 16, 32, 64}}},
	} {
		g := grid(t, c.form, c.norm, 2, 3)
		s := sum(t, g, []int{2, 3}, 5)
		add(t, s, 0, 1, -0.5) // 8, −4 sixteenths of the bound
		if c.form == Moments {
			add(t, s, 0, 0.5, 1)
		} else {
			add(t, s, 0, 0, 1)
		}
		add(t, s, 0, math.NaN(), 1) // contributes nothing
		add(t, s, 1, 0, math.Inf(1), 0)
		if c.form == Moments {
			add(t, s, 1, -0.5, -0.5, -1)
		} else {
			add(t, s, 1, 0, 0, -1)
		}
		unit := g.Limit / 16
		if c.form == Moments {
			unit *= unit
		}
		for _, block := range c.want {
			for i := range block {
				block[i] *= unit
			}
		}
		if got := exactly(t, s); !slices.EqualFunc(got, c.want, slices.Equal) {
			t.Errorf("%s %s: %v, want %v", c.form, c.norm, got, c.want)
		}
	}
}

// Rounding may not lean: over many records the mean error of an entry is far
// below half a step, which truncation would make of it. Records inside the
// bound are rounded to nearest, each.
func TestRoundingDoesNotLean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := testkit.Get(NewGrid(Vectors, rapid.SampledFrom([]Norm{L1, L2}).Draw(t, "norm"), 3, 1))(t)
		v := rapid.SliceOfN(rapid.Float64Range(-0.7, 0.7), 1, 4).Draw(t, "v")
		q := make([]int64, len(v))
		testkit.Do(t, g.quantise(q, slices.Clone(v)))
		for i, x := range v {
			if d := math.Abs(float64(q[i])*g.Step - x); d > g.Step*(0.5+1e-6) {
				t.Fatalf("%v became %d steps, off by %v steps", x, q[i], d/g.Step)
			}
		}
	})
}

// The noise of a release is that of its grid: on the diagonal of moments, and
// half the variance beside it. Each variance is estimated from n draws with a
// relative error of √(2/n); 5 of them fail once in 10⁶.
func TestNoiseOfARelease(t *testing.T) {
	for _, kind := range kinds {
		g := grid(t, kind.form, kind.norm, 2, 3)
		blocks := slices.Repeat([]int{150}, 20)
		var diagonal, beside []float64
		for _, block := range release(t, sum(t, g, blocks, 1)) {
			next, row := 0, 0
			for i, x := range block {
				v := float64(x) * g.Step / g.SD()
				if kind.form == Moments && i != next {
					beside = append(beside, v)
					continue
				}
				diagonal = append(diagonal, v)
				next += 1
				if kind.form == Moments {
					next += 149 - row
					row++
				}
			}
		}
		check := func(where string, draws []float64, want float64) {
			n := float64(len(draws))
			total, four := 0.0, 2.0
			for _, v := range draws {
				total += v * v
			}
			if kind.norm == L1 {
				four = 5 // kurtosis 6, less one
			}
			if got := total / n; math.Abs(got/want-1) > 5*math.Sqrt(four/n) {
				t.Errorf("%s %s, %s: variance %v of %v draws, want %v", kind.form, kind.norm, where, got, n, want)
			}
		}
		if len(diagonal) != 20*150 {
			t.Fatalf("%d entries", len(diagonal))
		}
		check("on the diagonal", diagonal, 1)
		if kind.form == Moments {
			check("beside the diagonal", beside, 0.5)
		}
	}
}

func TestSumsAreReleasedOnce(t *testing.T) {
	s := sum(t, grid(t, Moments, L2, 1, 1), []int{2}, 2)
	add(t, s, 0, 1, 0)
	release(t, s)
	if blocks, err := s.Release(noise.Keyed([32]byte{5})); err == nil || blocks != nil {
		t.Errorf("released again: %v", blocks)
	}
	if err := s.Add(0, []float64{1, 0}); err == nil {
		t.Error("a record is added after the release")
	}
}

func TestAReleaseWithoutNoiseIsNone(t *testing.T) {
	for _, kind := range kinds {
		s := sum(t, grid(t, kind.form, kind.norm, 1, 1), []int{2, 1}, 2)
		add(t, s, 0, 0.5, 0)
		held := s.sums
		if blocks, err := s.Release(nil); err == nil || blocks != nil {
			t.Errorf("%s %s: released %v", kind.form, kind.norm, blocks)
		}
		if held[0][0] != 0 {
			t.Errorf("%s %s: the exact sum is still there", kind.form, kind.norm)
		}
		if _, err := s.Release(noise.Keyed([32]byte{})); err == nil {
			t.Errorf("%s %s: a second attempt is allowed", kind.form, kind.norm)
		}
	}
}

// No sum can overflow: what NewSum admits fits into 62 bits, attained.
func TestSumsCannotOverflow(t *testing.T) {
	for _, kind := range kinds {
		for _, ratio := range []float64{3, 1e-5, 1e-9} {
			g := grid(t, kind.form, kind.norm, 1, ratio)
			top := int64(1) << 62 / g.Limit
			if kind.form == Moments {
				top /= g.Limit
			}
			if kind.form == Moments && ratio == 3 && top < 1<<33 {
				t.Errorf("moments hold only %d records", top)
			}
			if _, err := NewSum(g, []int{1}, top+1); err == nil {
				t.Errorf("%s %s, noise %v: %d records may overflow", kind.form, kind.norm, ratio, top+1)
			}
			s := sum(t, g, []int{1}, top)
			add(t, s, 0, 5)
			one := s.sums[0][0]
			if one > (1<<62)/top || one < int64(0.9999*float64(int64(1)<<62/top)) {
				t.Errorf("%s %s, noise %v: a record at the bound adds %d, %d are admitted", kind.form, kind.norm,
					ratio, one, top)
			}
		}
	}
}

func TestMisuseOfSums(t *testing.T) {
	g := grid(t, Vectors, L2, 1, 1)
	for name, make := range map[string]func() (*Sum, error){
		"no grid":          func() (*Sum, error) { return NewSum(Grid{}, []int{1}, 1) },
		"no blocks":        func() (*Sum, error) { return NewSum(g, nil, 1) },
		"an empty block":   func() (*Sum, error) { return NewSum(g, []int{1, 0}, 1) },
		"a long block":     func() (*Sum, error) { return NewSum(g, []int{maxLength + 1}, 1) },
		"many blocks":      func() (*Sum, error) { return NewSum(g, slices.Repeat([]int{maxLength}, 65), 1) },
		"large moments":    func() (*Sum, error) { return NewSum(grid(t, Moments, L2, 1, 1), []int{20_000}, 1) },
		"no records":       func() (*Sum, error) { return NewSum(g, []int{1}, 0) },
		"negative records": func() (*Sum, error) { return NewSum(g, []int{1}, -1) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	s := sum(t, g, []int{2, 1}, 2)
	for name, err := range map[string]error{
		"no such block":  s.Add(2, []float64{1}),
		"negative block": s.Add(-1, []float64{1}),
		"wrong length":   s.Add(1, []float64{1, 0}),
	} {
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	v := []float64{30, 40}
	add(t, s, 0, v...)
	if !slices.Equal(v, []float64{30, 40}) {
		t.Errorf("the caller's record became %v", v)
	}
	add(t, s, 1, math.NaN())
	if err := s.Add(1, []float64{1}); err == nil {
		t.Error("a third record of two is accepted")
	}
}

func ExampleSum() {
	// Noise of 2 times the bound, on sums over at most a million records.
	g, err := NewGrid(Vectors, L2, 10, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := NewSum(g, []int{2}, 1_000_000)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range [][]float64{{1, 2}, {300, 400}, {math.NaN(), 0}} {
		if err := s.Add(0, v); err != nil {
			fmt.Println(err)
			return
		}
	}
	blocks, err := s.Release(noise.Keyed([32]byte{7}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d numbers with noise of sd %.0f, in steps of %.1g\n", len(blocks[0]), g.SD(), g.Step)
	// Output: 2 numbers with noise of sd 20, in steps of 6e-07
}
