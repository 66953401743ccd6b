package masks

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
	"parley/internal/wire"
)

// world is a study of some sites, the first of which are its openers.
type world struct {
	parties []*Party
	sum     Sum
}

func newWorld(t testing.TB, sites, openers, quorum int, shape Shape) *world {
	t.Helper()
	w := &world{sum: Sum{Study: "a study", Round: 3, Task: sha256.Sum256([]byte("a task")), Shape: shape}}
	g := Group{Quorum: quorum}
	var all []Keys
	for i := range sites {
		k := testkit.Get(Simulated("a study", fmt.Sprint(i)))(t)
		all = append(all, k)
		g.Members = append(g.Members, k.Member(fmt.Sprint("site ", i)))
	}
	for i := range openers {
		g.Openers = append(g.Openers, i)
	}
	for i, k := range all {
		w.parties = append(w.parties, &Party{Group: g, Self: i, Keys: k})
	}
	return w
}

// mask is a site's part of the sum.
func (w *world) mask(t testing.TB, site int, x Vector) (Vector, Signed) {
	t.Helper()
	v := slices.Clone(x)
	key := sha256.Sum256(fmt.Append(nil, "release of site ", site))
	return v, testkit.Get(w.parties[site].Mask(w.sum, key, v))(t)
}

// open is the total of masked vectors as the coordinator makes it.
func (w *world) open(t testing.TB, masked []Vector, set []Signed) Vector {
	t.Helper()
	total := make(Vector, w.sum.Shape.Words())
	for _, v := range masked {
		w.sum.Shape.Add(total, v)
	}
	for _, o := range w.parties[0].Openers {
		i := slices.IndexFunc(set, func(s Signed) bool { return s.Site == o })
		w.sum.Shape.Subtract(total, testkit.Get(w.parties[o].Unmask(w.sum, set, set[i].Digest))(t))
	}
	return total
}

func shapes() *rapid.Generator[[]Block] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Block {
		return Block{Numbers: rapid.IntRange(1, 9).Draw(t, "numbers"), Words: rapid.IntRange(1, 4).Draw(t, "words")}
	}), 1, 4)
}

func integer(words []uint64) *big.Int {
	m := new(big.Int)
	for i := len(words) - 1; i >= 0; i-- {
		m.Lsh(m, 64).Or(m, new(big.Int).SetUint64(words[i]))
	}
	return m
}

// The total is that of plain adding in big integers, bit for bit, whoever of the sites that are no openers is in it.
func TestTotalIsThatOfPlainAdding(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		shape := Shape(shapes().Draw(r, "shape"))
		sites := rapid.IntRange(3, 12).Draw(r, "sites")
		openers := rapid.IntRange(2, min(5, sites)).Draw(r, "openers")
		w := newWorld(t, sites, openers, openers, shape)
		var masked []Vector
		var set []Signed
		var plain []Vector
		for i := range sites {
			if i >= openers && rapid.Bool().Draw(r, "gone") {
				continue
			}
			x := Vector(rapid.SliceOfN(rapid.Uint64(), shape.Words(), shape.Words()).Draw(r, "x"))
			v, s := w.mask(t, i, x)
			if slices.Equal(v, x) {
				r.Fatal("a vector left its site without a mask")
			}
			masked, set, plain = append(masked, v), append(set, s), append(plain, x)
		}
		got, at := w.open(t, masked, set), 0
		for _, b := range shape {
			modulus := new(big.Int).Lsh(big.NewInt(1), uint(64*b.Words))
			for range b.Numbers {
				want := new(big.Int)
				for _, x := range plain {
					want.Add(want, integer(x[at:][:b.Words]))
				}
				if want.Mod(want, modulus).Cmp(integer(got[at:][:b.Words])) != 0 {
					r.Fatalf("number at word %d: %v, not %v", at, integer(got[at:][:b.Words]), want)
				}
				at += b.Words
			}
		}
	})
}

// A number is rounded to the nearest step of the grid and read back as the nearest float64, so that sums of numbers
// in any order are one integer sum.
func TestGridsAreExact(t *testing.T) {
	for _, g := range []Grid{Raw, Standardised} {
		rapid.Check(t, func(r *rapid.T) {
			largest := math.Ldexp(1, 64*g.Words-1-room-g.Places) * (1 - 1e-9)
			n := rapid.IntRange(1, 40).Draw(r, "n")
			total, exact := make(Vector, g.Words), new(big.Rat)
			shape := Shape{{Numbers: 1, Words: g.Words}}
			for range n {
				x := rapid.OneOf(rapid.Float64Range(-largest, largest), rapid.Float64Range(-1, 1),
					rapid.Float64Range(-1e-20, 1e-20)).Draw(r, "x")
				words := make(Vector, g.Words)
				if err := g.Put(x, words); err != nil {
					r.Fatalf("%v: %v", x, err)
				}
				shape.Add(total, words)
				exact.Add(exact, nearest(x, g.Places))
			}
			want, _ := exact.Float64()
			if got, err := g.Get(total, n); got != want || err != nil {
				r.Fatalf("%v, not %v; %v", got, want, err)
			}
		})
		for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Ldexp(1, 64*g.Words-room-g.Places),
			-math.MaxFloat64} {
			if err := g.Put(x, make(Vector, g.Words)); !errors.Is(err, errRange) {
				t.Errorf("%v on grid %v: %v", x, g, err)
			}
		}
		over := make(Vector, g.Words)
		over[g.Words-1] = 5 << (63 - room)
		for range 2 { // what five numbers cannot add up to, and less it
			if _, err := g.Get(over, 6); err != nil {
				t.Errorf("a total of six on grid %v: %v", g, err)
			}
			if _, err := g.Get(over, 5); err == nil {
				t.Errorf("%x on grid %v: a total of five", over, g)
			}
			negate(over)
		}
	}
}

// nearest is x in whole steps, halves away from 0.
func nearest(x float64, places int) *big.Rat {
	scaled := new(big.Rat).SetFloat64(math.Abs(x))
	scaled.Mul(scaled, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(places))))
	twice := new(big.Int).Mul(scaled.Num(), big.NewInt(2))
	twice.Add(twice, scaled.Denom()).Quo(twice, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)))
	if x < 0 {
		twice.Neg(twice)
	}
	return new(big.Rat).SetFrac(twice, new(big.Int).Lsh(big.NewInt(1), uint(places)))
}

// An opener answers for the plan's sites alone, each once and in order, as many as the quorum, with its own vector
// among them as it sent it, and in the sum that all of them have signed for.
func TestOpenerRefuses(t *testing.T) {
	shape := Shape{{Numbers: 4, Words: 1}}
	w := newWorld(t, 5, 3, 3, shape)
	var set []Signed
	for i := range 5 {
		_, s := w.mask(t, i, make(Vector, 4))
		set = append(set, s)
	}
	signed := func(i int, change func(*Signed)) []Signed {
		out := slices.Clone(set)
		change(&out[i])
		return out
	}
	other := func(change func(*Sum)) Sum {
		s := w.sum
		change(&s)
		return s
	}
	_, elsewhere := newWorld(t, 6, 3, 3, shape).mask(t, 5, make(Vector, 4))
	for what, x := range map[string]struct {
		sum  Sum
		set  []Signed
		own  [32]byte
		self int
		says string
	}{
		"below the quorum": {w.sum, set[:2], set[0].Digest, 0, "the plan's quorum is 3"},
		"a site twice":     {w.sum, []Signed{set[0], set[1], set[1], set[2]}, set[0].Digest, 0, "each once"},
		"another order":    {w.sum, []Signed{set[1], set[0], set[2]}, set[0].Digest, 0, "order"},
		"a site outside the plan": {w.sum, append(slices.Clone(set), elsewhere), set[0].Digest, 0,
			"there is no site 6"},
		"a negative site": {w.sum, signed(0, func(s *Signed) { s.Site = -1 }), set[0].Digest, 0,
			"there is no site 0"},
		"another's signature": {w.sum, signed(3, func(s *Signed) { s.Signature = set[4].Signature }), set[0].Digest,
			0, "site 3 has not signed"},
		"another one-time key": {w.sum, signed(3, func(s *Signed) { s.Key = set[4].Key }), set[0].Digest, 0,
			"site 3 has not signed"},
		"a key of low order": {w.sum, signed(3, func(s *Signed) { s.Key = make([]byte, 32) }), set[0].Digest, 0,
			"site 3: its one-time key"},
		"a key that is none": {w.sum, signed(3, func(s *Signed) { s.Key = []byte{1} }), set[0].Digest, 0,
			"one-time key"},
		"another vector": {w.sum, signed(3, func(s *Signed) { s.Digest[0]++ }), set[0].Digest, 0,
			"site 3 has not signed"},
		"another study": {other(func(s *Sum) { s.Study = "b" }), set, set[0].Digest, 0, "has not signed"},
		"another round": {other(func(s *Sum) { s.Round++ }), set, set[0].Digest, 0, "has not signed"},
		"another task":  {other(func(s *Sum) { s.Task[0]++ }), set, set[0].Digest, 0, "has not signed"},
		"another length": {other(func(s *Sum) { s.Shape = Shape{{Numbers: 5, Words: 1}} }), set, set[0].Digest,
			0, "has not signed"},
		"another width": {other(func(s *Sum) { s.Shape = Shape{{Numbers: 2, Words: 2}} }), set, set[0].Digest,
			0, "has not signed"},
		"a shape that is none": {other(func(s *Sum) { s.Shape = Shape{{Numbers: 1 << 40, Words: 1}} }), set,
			set[0].Digest, 0, "block 1"},
		"its own is not in it": {w.sum, set[1:], set[0].Digest, 0, "what this site has sent"},
		"its own is another":   {w.sum, set, set[1].Digest, 0, "what this site has sent"},
		"it is no opener":      {w.sum, set, set[4].Digest, 4, "opens no sums"},
		"nobody":               {w.sum, nil, set[0].Digest, 0, "quorum"},
	} {
		if v, err := w.parties[x.self].Unmask(x.sum, x.set, x.own); !errors.Is(err, errRefused) ||
			!strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, %v, which does not say %q", what, v, err, x.says)
		}
	}
	if _, err := w.parties[0].Unmask(w.sum, set[:3], set[0].Digest); err != nil {
		t.Errorf("a set as it should be: %v", err)
	}
}

// Whatever a mask depends on, another of it gives another mask; the same gives the same, after a crash too.
func TestMasksDependOnAllOfTheSum(t *testing.T) {
	w := newWorld(t, 3, 2, 3, Shape{{Numbers: 4, Words: 1}})
	x := Vector{1, 2, 3, 4}
	first, _ := w.mask(t, 0, x)
	again, _ := w.mask(t, 0, x)
	if !slices.Equal(first, again) {
		t.Error("a release that is made again is another one")
	}
	differs := func(what string, v, x Vector) {
		for i := range v {
			if v[i]-x[i] == first[i]-(Vector{1, 2, 3, 4})[i] {
				t.Errorf("%s: the mask of number %d is the same", what, i)
			}
		}
	}
	other, _ := w.mask(t, 0, Vector{1, 2, 3, 5})
	differs("other numbers", other, Vector{1, 2, 3, 5})
	for what, change := range map[string]func(*Sum){
		"another study": func(s *Sum) { s.Study = "b" }, "another round": func(s *Sum) { s.Round++ },
		"another task": func(s *Sum) { s.Task[0]++ },
	} {
		was := w.sum
		change(&w.sum)
		v, _ := w.mask(t, 0, x)
		differs(what, v, x)
		w.sum = was
	}
}

// transcript is what a coordinator sees with two openers, of whom the second works with it.
func transcript(t *testing.T, data []Vector, streams map[int]Vector) []byte {
	t.Helper()
	w := newWorld(t, len(data), 2, len(data), Shape{{Numbers: 6, Words: 1}, {Numbers: 3, Words: 2}})
	var all bytes.Buffer
	var set []Signed
	for i, x := range data {
		for _, p := range w.parties {
			p.oracle = recorded{streams}
		}
		v, s := w.mask(t, i, x)
		set = append(set, s)
		fmt.Fprintf(&all, "%x/%x/%x/%x\n", v, s.Key, s.Digest, s.Signature)
	}
	for o := range 2 {
		fmt.Fprintf(&all, "%x\n", testkit.Get(w.parties[o].Unmask(w.sum, set, set[o].Digest))(t))
	}
	// those who work with it tell all
	fmt.Fprintf(&all, "%x %x\n", w.parties[1].Keys.Open.Bytes(), w.parties[3].Keys.Sign)
	return all.Bytes()
}

// recorded has the streams of the honest opener, 0, with the honest sites 0, 2 and 4.
type recorded struct{ streams map[int]Vector }

func (r recorded) once(site int) [32]byte { return sha256.Sum256(fmt.Append(nil, "once ", site)) }

func (r recorded) stream(site, opener int) (Vector, bool) {
	v, ok := r.streams[site]
	return v, ok && opener == 0
}

// Two data sets whose honest sites have the same total give the same transcript, byte for byte, under streams of the
// honest opener that are as likely: nothing in it tells which of the two it was.
func TestTranscriptsOfEqualTotalsCannotBeToldApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shape := Shape{{Numbers: 6, Words: 1}, {Numbers: 3, Words: 2}}
	draw := func() Vector {
		v := make(Vector, shape.Words())
		for i := range v {
			v[i] = rng.Uint64()
		}
		return v
	}
	for range 50 {
		honest := []int{0, 2, 4}
		one, streams := make([]Vector, 5), map[int]Vector{}
		for i := range one {
			one[i] = draw()
		}
		for _, i := range honest {
			streams[i] = draw()
		}
		// Rows move between honest sites, all of them, and the streams with them.
		other, moved := slices.Clone(one), map[int]Vector{}
		shift := []Vector{draw(), draw(), make(Vector, shape.Words())}
		shape.Subtract(shift[2], shift[0])
		shape.Subtract(shift[2], shift[1])
		for k, i := range honest {
			other[i], moved[i] = slices.Clone(one[i]), slices.Clone(streams[i])
			shape.Add(other[i], shift[k])
			shape.Subtract(moved[i], shift[k])
		}
		if !bytes.Equal(transcript(t, one, streams), transcript(t, other, moved)) {
			t.Fatal("the transcripts of two data sets with the same total differ")
		}
		other[1] = draw() // of a site that works with the coordinator
		if bytes.Equal(transcript(t, one, streams), transcript(t, other, moved)) {
			t.Fatal("the transcript does not depend on the data at all")
		}
	}
}

func TestMembersAreReadBack(t *testing.T) {
	k := testkit.Get(Simulated("a study", "north"))(t)
	m := testkit.Get(ParseMember("north", k.Member("north").Text()))(t)
	if m.Text() != k.Member("north").Text() || len(m.Fingerprint()) != 16 {
		t.Errorf("%s, %s", m.Text(), m.Fingerprint())
	}
	for _, text := range []string{"", "zz", m.Text()[2:], m.Text() + "00", m.Text()[:64] + strings.Repeat("0", 64)} {
		if _, err := ParseMember("north", text); err == nil || !strings.Contains(err.Error(), "north") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// What the protocol costs each end: seconds of one processor, and bytes.
//
//	go test ./privacy/masks -bench Cost -benchtime 1x
func BenchmarkCost(b *testing.B) {
	for _, sites := range []int{3, 34, 200, 1000} {
		for _, numbers := range []int{1000, 100_000} {
			shape := Shape{{Numbers: numbers, Words: 1}}
			w := newWorld(b, sites, min(5, sites), sites, shape)
			var set []Signed
			x := make(Vector, numbers)
			for i := range sites {
				_, s := w.mask(b, i, x)
				set = append(set, s)
			}
			bytesOf := func(v any) float64 { return float64(len(testkit.Get(wire.Marshal(v))(b))) }
			of := fmt.Sprintf("sites=%d/numbers=%d/", sites, numbers)
			b.Run(of+"site", func(b *testing.B) {
				for b.Loop() {
					v, s := w.mask(b, sites/2, x)
					b.ReportMetric(bytesOf(s)+float64(8*len(v)), "bytes-up")
				}
			})
			b.Run(of+"opener", func(b *testing.B) {
				for b.Loop() {
					v := testkit.Get(w.parties[0].Unmask(w.sum, set, set[0].Digest))(b)
					b.ReportMetric(float64(8*len(v)), "bytes-up")
					b.ReportMetric(bytesOf(set), "bytes-down")
				}
			})
			b.Run(of+"coordinator", func(b *testing.B) {
				total := make(Vector, numbers)
				for b.Loop() {
					for _, s := range set {
						if err := w.parties[0].Verify(w.sum, s); err != nil {
							b.Fatal(err)
						}
						shape.Add(total, x)
					}
				}
			})
			b.Run(of+"plain-adding", func(b *testing.B) {
				total := make(Vector, numbers)
				for b.Loop() {
					for range set {
						shape.Add(total, x)
					}
				}
			})
		}
	}
}
