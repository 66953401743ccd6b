package privacy_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/account"
	"parley/privacy/ledger"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

func mechanism(kind account.Kind, noise, diameter float64) account.Mechanism {
	return account.Mechanism{Kind: kind, Noise: noise, Rate: 1, Diameter: diameter, Count: 1}
}

// granted returns a session for sums over n subjects, with seeded noise.
func granted(t testing.TB, data dataset.Source, sums ...privacy.Sum) *privacy.Session {
	t.Helper()
	g := privacy.NewGate(study, open, sitestore.NewMemory(), data, privacytest.Seeded(1))
	return testkit.Get(g.AdmitAny(ask, privacy.Request{Protection: privacy.Differential, Sums: sums}))(t)
}

func vectors(noise float64, blocks ...int) privacy.Sum {
	return privacy.Sum{Name: "v", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: blocks, Bound: 5,
		Mechanism: mechanism(account.Gaussian, noise, 2)}
}

// near holds a noised entry to within 6 standard deviations of what it should
// be: at another seed a right one would fail with probability 2·10⁻⁹.
func near(t *testing.T, what string, got, want, sd float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 6*sd) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, 6*sd)
	}
}

func TestSumsAreClippedPerSubjectAndNoised(t *testing.T) {
	s := granted(t, subjects(200), vectors(1e-3, 2, 3))
	n, err := s.Sum(t.Context(), "v", func(row *dataset.Row, v []float64) int {
		i, _ := strconv.Atoi(row.ID)
		switch {
		case len(v) != 3 || v[0] != 0 || v[1] != 0 || v[2] != 0:
			t.Fatalf("row %s begins with %v", row.ID, v)
		case i < 50:
			v[0], v[1] = 3, 4 // at the bound
			v[2] = 1e9        // beyond the block, and not used
			return 0
		case i < 100:
			v[0], v[1] = 300, 400 // clipped to the same, jointly
			return 0
		case i < 150:
			v[2] = -1e200
			return 1
		case i < 160:
			v[0] = 1
			return -1
		case i < 170:
			v[0] = 1
			return 2 // no such block
		case i < 180:
			v[0] = math.NaN()
			return 1
		case i < 190:
			v[1], v[2] = math.Inf(-1), 1
			return 1
		}
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	if n.SD() < 5e-3 || n.SD() > 5.1e-3 {
		t.Errorf("the noise is %v, want 5·10⁻³", n.SD())
	}
	for block, want := range [][]float64{{300, 400}, {0, 0, -250}} {
		got := n.Floats(block)
		for i := range want {
			near(t, fmt.Sprintf("block %d entry %d", block, i), got[i], want[i], n.SD())
		}
	}
	if n.Floats(-1) != nil || n.Floats(2) != nil {
		t.Error("blocks that there are not have entries")
	}
	if err := n.Check(vectors(1e-3, 2, 3)); err != nil {
		t.Error(err)
	}
}

func TestMomentsHoldCountSumAndSquares(t *testing.T) {
	sum := privacy.Sum{Name: "m", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{2}, Bound: 2,
		Mechanism: mechanism(account.Gaussian, 0.01, math.Sqrt2)}
	n, err := granted(t, subjects(100), sum).Sum(t.Context(), "m", func(_ *dataset.Row, v []float64) int {
		v[0], v[1] = 1, -1.5
		return 0
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{100, -150, 225} {
		near(t, fmt.Sprintf("entry %d", i), n.Floats(0)[i], want, 0.04)
	}
	if math.Abs(n.SD()-0.04) > 1e-4 {
		t.Errorf("the noise is %v, want 0.01·2²", n.SD())
	}
}

// The noise is what was charged for: its standard deviation, from n draws, is
// within 5 of the √(2n)⁻¹ that it varies by (at another seed a right one would
// fail with probability 6·10⁻⁷), and half of it, or a missing factor, is not.
func TestGaussianNoiseIsWhatWasCharged(t *testing.T) {
	moments := privacy.Sum{Name: "v", Unit: privacy.Subject, Form: privacy.Moments, Blocks: []int{90, 90}, Bound: 3,
		Mechanism: mechanism(account.Gaussian, 2, math.Sqrt2)}
	for _, c := range []struct {
		sum  privacy.Sum
		want float64
	}{{vectors(2, 2000, 2000), 2 * 5}, {moments, 2 * 3 * 3}} {
		n := testkit.Get(granted(t, subjects(0), c.sum).Sum(t.Context(), "v", nil))(t)
		var diagonal, beside []float64
		for b, length := range c.sum.Blocks {
			v := n.Floats(b)
			if c.sum.Form == privacy.Vectors {
				diagonal = append(diagonal, v...)
				continue
			}
			for row := range length {
				diagonal, beside = append(diagonal, v[0]), append(beside, v[1:length-row]...)
				v = v[length-row:]
			}
		}
		for what, noise := range map[string]struct {
			drawn []float64
			want  float64
		}{"on the diagonal": {diagonal, c.want}, "beside it": {beside, c.want / math.Sqrt2}} {
			sum := 0.0
			for _, x := range noise.drawn {
				sum += x * x
			}
			count := float64(len(noise.drawn))
			if sd := math.Sqrt(sum / count); count > 0 && math.Abs(sd/noise.want-1) > 5/math.Sqrt(2*count) {
				t.Errorf("%s %s: standard deviation %v of %v draws, want %v", c.sum.Form, what, sd, count, noise.want)
			}
		}
		if n.SD() < c.want || n.SD() > c.want*(1+1e-5) {
			t.Errorf("%s: it says %v, want %v", c.sum.Form, n.SD(), c.want)
		}
	}
}

func TestLaplaceNoiseHasItsScale(t *testing.T) {
	sum := privacy.Sum{Name: "l", Unit: privacy.Subject, Form: privacy.Vectors, Blocks: []int{2000}, Bound: 3,
		Mechanism: mechanism(account.Laplace, 2, 2)}
	n := testkit.Get(granted(t, subjects(0), sum).Sum(t.Context(), "l", nil))(t)
	mean := 0.0
	for _, x := range n.Floats(0) {
		mean += math.Abs(x) / 2000
	}
	near(t, "E|x| = b", mean, 6, 6/math.Sqrt(2000))
	if math.Abs(n.SD()-6*math.Sqrt2) > 1e-3 {
		t.Errorf("its standard deviation is %v", n.SD())
	}
}

// One vector of the whole site: clipped, noised, and noise alone where the
// rows allow no computation.
func TestWholeSiteGivesOneVector(t *testing.T) {
	sum := vectors(1e-3, 2)
	sum.Unit, sum.Mechanism.Count = privacy.WholeSite, 3
	s := granted(t, subjects(7), sum)
	for name, c := range map[string]struct {
		compute func(dataset.Source, []float64) error
		want    [2]float64
	}{
		"counts": {func(d dataset.Source, v []float64) error {
			for range d.Rows(t.Context()) {
				v[1] += 1000
			}
			return nil
		}, [2]float64{0, 5}},
		"fails": {func(_ dataset.Source, v []float64) error {
			v[0] = 1
			return errors.New("singular")
		}, [2]float64{}},
		"is not finite": {func(_ dataset.Source, v []float64) error {
			v[0], v[1] = math.NaN(), 3
			return nil
		}, [2]float64{}},
	} {
		n := testkit.Get(s.Whole(t.Context(), "v", c.compute))(t)
		for i, want := range c.want {
			near(t, name, n.Floats(0)[i], want, n.SD())
		}
	}
}

// broken cannot be read to its end.
type broken struct{ subjects }

func (b broken) Rows(ctx context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) {
		for row := range b.subjects.Rows(ctx) {
			if !yield(row, nil) {
				return
			}
		}
		yield(nil, errBroken)
	}
}

func TestUnreadableDataGiveNoSum(t *testing.T) {
	whole := vectors(1, 1)
	whole.Name, whole.Unit = "w", privacy.WholeSite
	s := granted(t, broken{3}, vectors(1, 1), whole)
	zero := func(*dataset.Row, []float64) int { return 0 }
	if n, err := s.Sum(t.Context(), "v", zero); !errors.Is(err, errBroken) || n != nil {
		t.Errorf("%v, %v", n, err)
	}
	n, err := s.Whole(t.Context(), "w", func(d dataset.Source, v []float64) error {
		for _, err := range d.Rows(t.Context()) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, errBroken) || n != nil {
		t.Errorf("%v, %v", n, err)
	}
	if _, err := s.Sum(t.Context(), "v", zero); err == nil || !strings.Contains(err.Error(), "as often") {
		t.Errorf("a sum that failed was made again: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := granted(t, subjects(3), vectors(1, 1)).Sum(ctx, "v", zero); !errors.Is(err, context.Canceled) ||
		n != nil {
		t.Errorf("%v, %v", n, err)
	}
}

func TestSessionGivesWhatWasDeclaredAndNoMore(t *testing.T) {
	twice := vectors(1, 1)
	twice.Mechanism.Count = 2
	whole := vectors(1, 1)
	whole.Name, whole.Unit = "w", privacy.WholeSite
	s := granted(t, subjects(3), twice, whole)
	if d, err := s.Data(); err == nil || d != nil {
		t.Error("a session of noised sums gave rows")
	}
	zero := func(*dataset.Row, []float64) int { return 0 }
	compute := func(dataset.Source, []float64) error { return nil }
	_, first := s.Sum(t.Context(), "v", zero)
	_, second := s.Sum(t.Context(), "v", zero)
	_, third := s.Sum(t.Context(), "v", zero)
	_, other := s.Sum(t.Context(), "x", zero)
	_, unit := s.Sum(t.Context(), "w", zero)
	_, unit2 := s.Whole(t.Context(), "v", compute)
	_, sealing := s.Seal([]byte("body"), nil)
	_, late := s.Whole(t.Context(), "w", compute)
	testkit.Do(t, errors.Join(first, second, sealing))
	for want, err := range map[string]error{"has been made as often": third, "declared no sum": other,
		`unit "site"`: unit, `unit "subject"`: unit2, "has ended": late} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	plain := testkit.Get(privacy.NewGate(study, open, sitestore.NewMemory(), subjects(1)).AdmitAny(ask, request))(t)
	if _, err := plain.Sum(t.Context(), "v", zero); err == nil {
		t.Error("a session without protection made a noised sum")
	}
}

// Every sum draws its own Poisson sample: the number of rows that take part is
// binomial. 5 standard deviations: a right sampler would fail at another seed
// with probability 6·10⁻⁷ each.
func TestSamplesArePoisson(t *testing.T) {
	sum := vectors(1, 1)
	sum.Mechanism.Rate, sum.Mechanism.Count = 0.1, 5
	s := granted(t, subjects(10_000), sum)
	taken := map[string]int{}
	var counts []int
	for range 5 {
		n := 0
		if _, err := s.Sum(t.Context(), "v", func(row *dataset.Row, _ []float64) int {
			taken[row.ID]++
			n++
			return 0
		}); err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(n)-1000) > 5*30 {
			t.Errorf("%d rows of 10 000 took part at a rate of 0.1", n)
		}
		counts = append(counts, n)
	}
	if len(slices.Compact(counts)) == 1 {
		t.Errorf("every sample had %d rows: they are not Poisson", counts[0])
	}
	// Independent samples: a row is in two or more of five with probability 0.0815.
	more := 0
	for _, n := range taken {
		if n > 1 {
			more++
		}
	}
	if math.Abs(float64(more)-815) > 5*27.4 {
		t.Errorf("%d rows were in several samples, want about 815", more)
	}
}

func TestSeededReleasesSaySoAndRepeat(t *testing.T) {
	release := func(round int, options ...privacy.Option) privacy.Opened {
		a := ask
		a.Round = round
		m := sitestore.NewMemory()
		s := testkit.Get(privacy.NewGate(study, open, m, subjects(3), options...).AdmitAny(a,
			privacy.Request{Protection: privacy.Differential, Sums: []privacy.Sum{vectors(1, 8)}}))(t)
		n := testkit.Get(s.Sum(t.Context(), "v", func(*dataset.Row, []float64) int { return 0 }))(t)
		r := testkit.Get(s.Seal(nil, nil))(t)
		o := testkit.Get(privacy.Open(r.Bytes(), differential(vectors(1, 8))))(t)
		if sent := o.Sums["v"]; len(o.Sums) != 1 || len(sent) != 1 || !reflect.DeepEqual(sent[0], n) {
			t.Fatalf("%+v was made, and the release holds %+v", n, o.Sums)
		}
		charged, err := ledger.Read(m)
		if err != nil || charged.Entries[0].Seeded != o.Seeded {
			t.Fatalf("the ledger says %+v, %v", charged, err)
		}
		return o
	}
	one, again, next, other, real := release(1, privacytest.Seeded(7)), release(1, privacytest.Seeded(7)),
		release(2, privacytest.Seeded(7)), release(1, privacytest.Seeded(8)), release(1)
	if !one.Seeded || real.Seeded {
		t.Errorf("seeded %v, from the system %v", one.Seeded, real.Seeded)
	}
	if !reflect.DeepEqual(one.Sums, again.Sums) {
		t.Error("the same seed gave other noise")
	}
	for _, o := range []privacy.Opened{next, other, real} {
		if reflect.DeepEqual(one.Sums, o.Sums) {
			t.Errorf("noise was used twice: %v", o.Sums["v"][0].Integers())
		}
	}
}
