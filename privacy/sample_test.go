package privacy_test

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"math"
	"strconv"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/privacy"
	"parley/privacy/internal/noise"
	"parley/privacy/privacytest"
	"parley/sitestore"
)

// sampled makes so many sums of a Poisson sample, and says of each which rows
// took part.
func sampled(t *testing.T, data privacy.Study, rows int, rate float64, uses int) (taken [][]bool) {
	t.Helper()
	sum := vectors(1, 1)
	sum.Mechanism.Rate, sum.Mechanism.Count = rate, uses
	s := testkit.Get(privacy.NewGate(data, open, sitestore.NewMemory(), subjects(rows), privacytest.Seeded(5)).AdmitAny(
		ask, differential(sum)))(t)
	for range uses {
		in := make([]bool, rows)
		if _, err := s.Sum(t.Context(), "v", func(row *dataset.Row, _ []float64) int {
			i, _ := strconv.Atoi(row.ID)
			in[i] = true
			return 0
		}); err != nil {
			t.Fatal(err)
		}
		taken = append(taken, in)
	}
	return taken
}

// The rows of a sample are those for which the coin of the declared rate, thrown
// with the stream that belongs to the release, the data and the use, shows 1. So
// any other rate is seen, however near, once there are rows enough; and each
// sum has a stream of its own.
func TestSampleIsWhatTheCoinShows(t *testing.T) {
	const rows, uses = 5000, 3
	s := study
	data := [32]byte{7, 7}
	s.Data = func() ([32]byte, error) { return data, nil }
	key := sha256.Sum256(fmt.Appendf(nil, "parley noise %d %s", 5, "3fa9/north/2")) // of privacytest.Seeded(5)
	for _, rate := range []float64{0.02, 0.3, 0.97, 1e-3} {
		taken := sampled(t, s, rows, rate, uses)
		coin := testkit.Get(noise.NewCoin(rate))(t)
		for use := range uses {
			info := fmt.Sprintf("parley noise 1/sample/%d/%q/%x/%x/%x", use+1, "v", ask.Task, data, sha256.Sum256(nil))
			own := testkit.Get(hkdf.Key(sha256.New, key[:], nil, info, noise.KeySize))(t)
			// The session draws 1024 at a time, each of which throws away what is
			// left of a block of the stream.
			source := noise.Keyed([noise.KeySize]byte(own))
			var want []int64
			for len(want) < rows {
				drawn := make([]int64, 1024)
				testkit.Do(t, coin.Fill(drawn, source))
				want = append(want, drawn...)
			}
			for i, in := range taken[use] {
				if in != (want[i] == 1) {
					t.Fatalf("rate %v, sum %d: row %d takes part: %v, and the coin shows %d", rate, use+1,
						i, in, want[i])
				}
			}
		}
	}
}

// The same without a word on how it is done: of many rows a binomial number takes
// part. 6 standard deviations: a right sampler would fail at another seed with a
// probability of 2·10⁻⁹ each; a rate that is 3 % too high is 10 and more away.
func TestRateIsTheDeclaredOne(t *testing.T) {
	const rows = 400_000
	for _, rate := range []float64{0.25, 0.5} {
		n := 0
		for _, in := range sampled(t, study, rows, rate, 1)[0] {
			if in {
				n++
			}
		}
		sd := math.Sqrt(rows * rate * (1 - rate))
		t.Logf("rate %v: %d of %d, %.2f standard deviations away; 3 %% more would be %.1f", rate, n, rows,
			(float64(n)-rows*rate)/sd, 0.03*rows*rate/sd)
		if math.Abs(float64(n)-rows*rate) > 6*sd {
			t.Errorf("%d of %d rows took part at a rate of %v", n, rows, rate)
		}
	}
}

// Everything that noise is tied to makes other noise: the release, the task, the
// data, the sum's name, its use, and what is summed; and so for samples, but for
// what is summed, which they decide.
func TestNoiseIsTiedToWhatItIsFor(t *testing.T) {
	type what struct {
		a     privacy.Ask
		data  byte
		name  string
		uses  int
		first float64
	}
	plain := what{a: ask, name: "v", uses: 1}
	draw := func(w what) (noised string, rows string) {
		sum := vectors(1, 8)
		sum.Name, sum.Mechanism.Count, sum.Mechanism.Rate = w.name, w.uses, 0.5
		s := study
		s.Data = func() ([32]byte, error) { return [32]byte{w.data}, nil }
		session := testkit.Get(privacy.NewGate(s, open, sitestore.NewMemory(), subjects(64),
			privacytest.Seeded(1)).AdmitAny(w.a, differential(sum)))(t)
		for range w.uses {
			rows = ""
			exact := 0.0
			n, err := session.Sum(t.Context(), w.name, func(row *dataset.Row, v []float64) int {
				rows += row.ID + " "
				v[0] = w.first
				exact += w.first
				return 0
			})
			if err != nil {
				t.Fatal(err)
			}
			blocks := n.Integers()[0]
			blocks[0] -= int64(math.Round(exact / sum.Step()))
			noised = fmt.Sprint(blocks)
		}
		return noised, rows
	}
	changed := map[string]func(*what){
		"round":                   func(w *what) { w.a.Round++ },
		"task":                    func(w *what) { w.a.Task[31]++ },
		"data's fingerprint":      func(w *what) { w.data++ },
		"name":                    func(w *what) { w.name = "w" },
		"use":                     func(w *what) { w.uses++ },
		"what the rows add up to": func(w *what) { w.first = 1.25 }, // a whole number of steps
	}
	noised, rows := draw(plain)
	if again, sameRows := draw(plain); again != noised || sameRows != rows {
		t.Error("the same is not repeated")
	}
	seen := map[string]string{noised: "nothing"}
	for name, change := range changed {
		w := plain
		change(&w)
		other, otherRows := draw(w)
		if before, ok := seen[other]; ok {
			t.Errorf("another %s has the noise of another %s", name, before)
		}
		seen[other] = name
		if same := otherRows == rows; same != (name == "what the rows add up to") {
			t.Errorf("another %s: the same rows take part: %v", name, same)
		}
	}
}
