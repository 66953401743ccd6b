package account

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"parley/internal/testkit"
)

// exact returns log δ(ε) of the worse direction by the contour integral, with a
// relative error below 1e-6. ok is false where it converges too slowly.
func exact(ms []Mechanism, a Adjacency, epsilon float64) (logDelta float64, ok bool) {
	logDelta = math.Inf(-1)
	for _, c := range compose(ms, a) {
		s := c.saddleAt(epsilon)
		if epsilon >= c.supremum() || s.renyi() < logDelta {
			continue
		}
		theta, l, relative := s.theta, 0.0, math.Inf(1)
		for _, share := range []float64{1, 0.8, 0.6} { // beyond some θ a rare loss takes over
			if relative > 1e-6 {
				l, relative = c.contour(c.through(share*theta, epsilon), 1e-7, 1e7)
			}
		}
		if relative > 1e-6 {
			return 0, false
		}
		logDelta = math.Max(logDelta, l)
	}
	return logDelta, true
}

// drawMechanism draws a mechanism from what plans may contain.
func drawMechanism(t *rapid.T) Mechanism {
	m := Mechanism{
		Kind:     Gaussian,
		Noise:    math.Exp(rapid.Float64Range(-0.7, 4).Draw(t, "log noise")),
		Rate:     1,
		Diameter: 2,
		Count:    int(math.Exp(rapid.Float64Range(0, 7).Draw(t, "log count"))),
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		m.Kind = Laplace
	case 1:
		m.Diameter = math.Sqrt2
	default:
		m.Rate = math.Exp(rapid.Float64Range(-7, -0.1).Draw(t, "log rate"))
	}
	return m
}

type query struct {
	ms    []Mechanism
	a     Adjacency
	delta float64
}

func drawQuery(t *rapid.T) query {
	q := query{
		a:     rapid.SampledFrom([]Adjacency{AddRemove, ReplaceOne}).Draw(t, "adjacency"),
		delta: math.Pow(10, rapid.Float64Range(-16, -1.5).Draw(t, "log10 delta")),
	}
	for range rapid.IntRange(1, 4).Draw(t, "mechanisms") {
		q.ms = append(q.ms, drawMechanism(t))
	}
	return q
}

func (q query) epsilon(t *rapid.T) float64 {
	t.Helper()
	e, err := Epsilon(q.ms, q.a, q.delta)
	if err != nil {
		t.Fatalf("%+v: %v", q, err)
	}
	return e
}

// rise is what rounding up may add to ε. Where ε is a few thousandths, many sampled
// releases have added up to 1.4e-6: 1096 of noise 1 at rate 9.1e-4, replace-one, δ .0255.
func rise(epsilon float64) float64 { return 5e-4*epsilon + 2e-6 }

type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// compareEpsilon holds the ε of a plan against the exact integral, as far as that
// converges.
func compareEpsilon(t reporter, q query, e float64) (compared bool) {
	t.Helper()
	target := math.Log(q.delta)
	l, compared := exact(q.ms, q.a, e)
	if compared && l > target+1e-6 {
		t.Errorf("%+v: ε %v is below the tight value: δ there is %v", q, e, math.Exp(l))
	}
	if lower := e - rise(e); lower > 0 {
		if l, ok := exact(q.ms, q.a, lower); ok && l < target-1e-6 {
			t.Errorf("%+v: ε %v is not tight: at %v δ is already %v", q, e, lower, math.Exp(l))
		}
	}
	return compared
}

// compareDelta holds the δ of a plan at ε against the exact integral.
func compareDelta(t reporter, q query, e, d float64) (compared bool) {
	t.Helper()
	l, ok := exact(q.ms, q.a, e)
	if !ok || l < logTiny {
		return false
	}
	want := math.Min(1, math.Exp(l))
	if d < want*(1-1e-6) {
		t.Errorf("%+v: δ(%v) %v is below the tight %v", q, e, d, want)
	}
	if d > want*1.005+1e-13 {
		t.Errorf("%+v: δ(%v) %v is above the tight %v by %.1e", q, e, d, want, d/want-1)
	}
	return true
}

// someCompared fails if the exact integral was of no use. It converges for about four draws
// in five; ten failures in a row are one run in 10⁷.
func someCompared(t *testing.T, drawn, compared int) {
	t.Helper()
	t.Logf("%d of %d draws were compared", compared, drawn)
	if drawn >= 10 && compared == 0 {
		t.Error("nothing was compared")
	}
}

// TestEpsilonOfRandomPlans holds ε against the exact integral, against Rényi's
// bound, and against itself on a plan that costs more or the same.
func TestEpsilonOfRandomPlans(t *testing.T) {
	drawn, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 5).Draw(t, "sixth") > 0 { // each draw is several queries
			return
		}
		drawn++
		q := drawQuery(t)
		e := q.epsilon(t)
		if compareEpsilon(t, q, e) {
			compared++
		}
		bound, _, err := epsilonRDP(q.ms, q.a, q.delta)
		if err != nil {
			t.Fatal(err)
		}
		if e > bound+rise(bound) {
			t.Errorf("%+v: ε %v is above Rényi's %v", q, e, bound)
		}

		m := &q.ms[0]
		more := rapid.Float64Range(1.01, 2).Draw(t, "factor")
		what := rapid.SampledFrom([]string{"count", "rate", "noise", "delta", "split"}).Draw(t, "change")
		switch what {
		case "count":
			m.Count = int(math.Ceil(float64(m.Count) * more))
		case "rate":
			if m.Rate < 1 {
				m.Rate = math.Min(0.999, m.Rate*more)
			}
		case "noise":
			m.Noise /= more
		case "delta":
			q.delta /= more
		case "split":
			if m.Count > 1 {
				rest := *m
				rest.Count = rapid.IntRange(1, m.Count-1).Draw(t, "second part")
				m.Count -= rest.Count
				q.ms = append(q.ms, rest)
			}
			if got := q.epsilon(t); math.Abs(got-e) > 1e-9*e {
				t.Errorf("%+v: ε %v in one entry, %v in two", q, e, got)
			}
		}
		if worse := q.epsilon(t); worse < e-rise(e) {
			t.Errorf("ε falls from %v to %v for %+v by a change of %s by %v", e, worse, q, what, more)
		}
	})
	someCompared(t, drawn, compared)
}

func TestDeltaOfRandomPlans(t *testing.T) {
	drawn, compared := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		if rapid.IntRange(0, 3).Draw(t, "fourth") > 0 { // as above
			return
		}
		drawn++
		q := drawQuery(t)
		e := math.Exp(rapid.Float64Range(-5, 3).Draw(t, "log epsilon"))
		d, err := Delta(q.ms, q.a, e)
		if err != nil {
			t.Fatalf("%+v at ε %v: %v", q, e, err)
		}
		if compareDelta(t, q, e, d) {
			compared++
		}
	})
	someCompared(t, drawn, compared)
}

// TestPlansOfTwoModes: where sampling is rare, the loss that decides δ has two
// modes, the usual losses of all steps and a large one of one step, or many steps
// with few atoms between them.
func TestPlansOfTwoModes(t *testing.T) {
	for _, q := range []query{
		{[]Mechanism{gaussian(6.752352392698907, 0.0009840306270468594, 677)}, AddRemove, 1.7402026426693787e-05},
		{[]Mechanism{gaussian(17.738793541952475, 0.0010587452404687118, 82)}, AddRemove, 2.742688666364176e-12},
		{[]Mechanism{gaussian(1.2297492117416275, 0.0029234458674775436, 431)}, ReplaceOne, 3.4670736685733206e-14},
		{[]Mechanism{gaussian(2.4273091975019465, 0.003887791391452349, 375), noised(Laplace, 0.6045317170025282, 4)},
			ReplaceOne, 2.6837060916110513e-11},
	} {
		e, err := Epsilon(q.ms, q.a, q.delta)
		if err != nil || !compareEpsilon(t, q, e) {
			t.Errorf("%+v: ε %v, error %v: not compared", q, e, err)
		}
		bound, _, err := epsilonRDP(q.ms, q.a, q.delta)
		if err != nil || e > bound {
			t.Errorf("%+v: ε %v is above Rényi's %v, error %v", q, e, bound, err)
		}
	}
	rare := gaussian(0.2971691336565141, 1.8048039060482517e-06, 1)
	for _, c := range []struct {
		ms []Mechanism
		a  Adjacency
		e  float64
	}{
		{[]Mechanism{gaussian(7.382184419830215, 0.0025061363128327573, 778)}, ReplaceOne, 0.27145446014611346},
		{[]Mechanism{gaussian(17.501064130979692, 0.4818166136160109, 30), rare, noised(Laplace, 1.004, 5),
			noised(Laplace, 5132, 7862)}, AddRemove, 4.21742884916011},
	} {
		d, err := Delta(c.ms, c.a, c.e)
		if err != nil || !compareDelta(t, query{ms: c.ms, a: c.a}, c.e, d) {
			t.Errorf("%+v: δ %v, error %v: not compared", c, d, err)
		}
	}
}

// TestLargeLosses: where ε is in the thousands, e^ε is out of range over a small
// part of the window, and δ must not be.
func TestLargeLosses(t *testing.T) {
	for _, q := range []query{
		{[]Mechanism{{Gaussian, 0.08112488475267604, 1, 1.625351382768426, 14633},
			{Laplace, 4.9762670973096865, 1, 0.5192390610367765, 23711}}, ReplaceOne, 5.210381585040608e-07},
		{[]Mechanism{gaussian(0.06648696381293882, 0.43791131519691734, 927), gaussian(249, 0.9999998, 32546)},
			AddRemove, 1.1975198992322515e-08},
		{[]Mechanism{gaussian(0.09775241069918235, 0.18968652034216585, 6756)}, ReplaceOne, 7.46226854989417e-13},
	} {
		if e, err := Epsilon(q.ms, q.a, q.delta); err != nil || !compareEpsilon(t, q, e) {
			t.Errorf("%+v: ε %v, error %v: not compared", q, e, err)
		}
	}
}

// TestNearlyPure: with all noise Laplace's, the largest loss has a probability of
// its own, and any smaller δ has its ε.
func TestNearlyPure(t *testing.T) {
	ms := []Mechanism{noised(Laplace, 4.939196082942897, 3), noised(Laplace, 1.6201678328313016, 2)}
	pure := 3/ms[0].Noise + 2/ms[1].Noise
	for _, delta := range []float64{1e-9, 8.751829473293041e-12, 1e-15} {
		e, err := Epsilon(ms, AddRemove, delta)
		// The atom at pure has probability 2⁻⁵, so ε is within 32 δ of it.
		if err != nil || e > pure*(1+1e-12) || e < pure*(1-1e-12)-33*delta {
			t.Errorf("δ %v: ε %v, error %v, want %v", delta, e, err, pure)
		}
	}
}

// TestContourOfAtoms: a sum of twenty coins has a spectrum of narrow peaks with
// octaves of next to nothing between them, where the integral must not end.
func TestContourOfAtoms(t *testing.T) {
	ms := []Mechanism{noised(Laplace, 1.0019550335910028, 3), noised(Laplace, 54.598150033144236, 20)}
	const epsilon, want = 0.8824969025845955, 0.344681011 // on a grid of step 9.8e-6
	c := compose(ms, AddRemove)[0]
	for _, share := range []float64{1e-2, 1e-3, 1e-4} {
		logDelta, relative := c.contour(c.saddleAt(epsilon), share, 3e7)
		if relative > share*1.01 {
			t.Errorf("share %v: only %v was reached", share, relative)
		}
		if got := math.Exp(logDelta); math.Abs(got-want) > relative*want {
			t.Errorf("share %v: δ %v, want %v within %v of it", share, got, want, relative)
		}
	}
	if _, err := Delta(ms, AddRemove, epsilon); err != nil {
		t.Error(err)
	}
}

// TestContourOfNearAtoms: with little noise, sampled records have nearly three
// losses, and the integral must not end between the peaks of their spectrum. It
// once ended 2e-8 off, which refused a sound answer so near to 1.
func TestContourOfNearAtoms(t *testing.T) {
	ms := []Mechanism{
		{Gaussian, 3.2282092287470614, 1, 1.588872456962965, 5},
		gaussian(0.05695985647172325, 0.039373596728327076, 411),
		gaussian(0.23749919587200882, 0.012510684766181838, 1),
	}
	const epsilon, want = 0.0332, 3.96e-8 // 1 − δ, by the contour at a budget of 1e8
	d, err := Delta(ms, ReplaceOne, epsilon)
	if err != nil || math.Abs(1-d-want) > 0.05*want {
		t.Errorf("δ is 1 − %v, error %v, want 1 − %v", 1-d, err, want)
	}
	c := compose(ms, ReplaceOne)[0]
	for _, work := range []float64{1e5, 1e6, 3e6} {
		l, relative := c.contour(c.saddleAt(epsilon), 1e-4, work)
		if got := -math.Expm1(l); math.Abs(got-want) > relative+0.01*want {
			t.Errorf("work %v: δ is 1 − %v within %v, want 1 − %v", work, got, relative, want)
		}
	}
}

// TestRateNearOne: a sampled Gaussian tends to the plain one. At 1 − 1e-7 the
// two differ by about that much of ε.
func TestRateNearOne(t *testing.T) {
	for _, a := range []Adjacency{AddRemove, ReplaceOne} {
		for _, count := range []int{1, 40, 1000} {
			noise := 2 * math.Sqrt(float64(count))
			plain := testkit.Get(Epsilon([]Mechanism{gaussian(noise, 1, count)}, a, 1e-5))(t)
			near := testkit.Get(Epsilon([]Mechanism{gaussian(noise, 1-1e-7, count)}, a, 1e-5))(t)
			if near < plain*(1-1e-5) || near > plain*(1+1e-4) {
				t.Errorf("%s, %d steps: ε %v at a rate of nearly 1, %v at 1", a, count, near, plain)
			}
		}
	}
}

// TestSingleSteps compares one application with closed forms: δ of a sampled
// Gaussian from normal tails, δ of Laplace noise 1 − exp((ε − 1/b)/2).
func TestSingleSteps(t *testing.T) {
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for _, q := range []float64{0.01, 0.3, 0.9} {
		for _, sigma := range []float64{0.4, 1.2, 5} {
			m := sampled{q: q, sigma: sigma, dir: remove}
			for _, e := range []float64{0.01, 0.1, 1, 3} {
				x := m.outcome(e)
				// P(X > x) − exp(ε) Q(X > x), the worse direction for ε ≥ 0.
				want := q*normal((1-x)/sigma) - (math.Exp(e)-1+q)*normal(-x/sigma)
				got := testkit.Get(Delta([]Mechanism{gaussian(sigma, q, 1)}, AddRemove, e))(t)
				if want > 1e-12 && (got < want*(1-1e-9) || got > want*(1+1e-6)+1e-16) {
					t.Errorf("rate %v, noise %v: δ(%v) = %v, want %v", q, sigma, e, got, want)
				}
			}
		}
	}
	for _, b := range []float64{0.2, 1, 30} {
		for _, share := range []float64{0, 0.3, 0.99, 0.999999, 1} {
			e := share / b
			want := -math.Expm1((e - 1/b) / 2)
			got := testkit.Get(Delta([]Mechanism{noised(Laplace, b, 1)}, AddRemove, e))(t)
			if got < want*(1-1e-12) || got > want*1.002+1e-13 {
				t.Errorf("Laplace of scale %v: δ(%v) = %v, want %v", b, e, got, want)
			}
		}
	}
}

// TestLatticeLosses compares many applications of Laplace noise on a scale
// where the loss is practically ±ε₀, randomised response, with the binomial
// sum.
func TestLatticeLosses(t *testing.T) {
	const e0, n = 60.0, 12
	ms := []Mechanism{noised(Laplace, 1/e0, n)}
	// The loss is e0 − 2 Exp(1) per step at most; δ(ε) for the Gamma sum of n
	// exponentials G: E (1 − exp(ε − n e0 + 2 G))₊, with ε 1 below n e0. Each step
	// has its atom with probability ½.
	epsilon := n*e0 - 1
	want := -math.Expm1(-1) * math.Pow(2, -n) // no exponential at all
	for k := 1; k <= n; k++ {                 // k of them, of mean 1, below ½
		choose := math.Gamma(n+1) / math.Gamma(float64(k)+1) / math.Gamma(float64(n-k)+1)
		var integral float64
		const steps = 20000
		for i := range steps {
			g := (float64(i) + 0.5) / steps / 2
			density := math.Pow(g, float64(k-1)) * math.Exp(-g) / math.Gamma(float64(k))
			integral += density * -math.Expm1(2*g-1) / steps / 2
		}
		want += choose * math.Pow(2, -n) * integral
	}
	got := testkit.Get(Delta(ms, AddRemove, epsilon))(t)
	if got < want*(1-1e-7) || got > want*1.002 {
		t.Errorf("δ(%v) = %v, want %v", epsilon, got, want)
	}
}

func TestEpsilonAtTheEdges(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name  string
		ms    []Mechanism
		delta float64
		want  float64
	}{
		{"nothing", nil, 1e-5, 0},
		{"covered by δ, sampled", []Mechanism{gaussian(50, 0.5, 1)}, 0.02, 0},
		{"covered by δ, Laplace", []Mechanism{noised(Laplace, 1000, 1)}, 0.02, 0},
		{"pure, Laplace", []Mechanism{noised(Laplace, 10, 20)}, 0, 2},
		{"pure, Gaussian", []Mechanism{gaussian(1, 1, 1)}, 0, inf},
		{"pure, sampled", []Mechanism{gaussian(1, 0.1, 1)}, 0, inf},
		{"nearly pure, Laplace", []Mechanism{noised(Laplace, 10, 20)}, 1e-300, 2},
	} {
		got, err := Epsilon(c.ms, AddRemove, c.delta)
		if err != nil || !(got >= c.want*(1-1e-12) && (got <= c.want*(1+1e-9) || got == c.want)) {
			t.Errorf("%s: ε %v, error %v, want %v", c.name, got, err, c.want)
		}
	}
	for _, delta := range []float64{-1, 1, 2, math.NaN()} {
		if _, err := Epsilon([]Mechanism{gaussian(1, 1, 1)}, AddRemove, delta); err == nil {
			t.Errorf("δ = %v passes", delta)
		}
	}
	for _, e := range []float64{-1, math.NaN()} {
		if _, err := Delta([]Mechanism{gaussian(1, 1, 1)}, AddRemove, e); err == nil {
			t.Errorf("ε = %v passes", e)
		}
	}
	if d, err := Delta([]Mechanism{gaussian(1, 0.1, 7)}, AddRemove, inf); d != 0 || err != nil {
		t.Errorf("δ(∞) = %v, %v", d, err)
	}
}

// TestExtremePlans asks for answers, without an error and between zero and
// Rényi's, where ranges are extreme.
func TestExtremePlans(t *testing.T) {
	for _, c := range []query{
		{[]Mechanism{gaussian(0.05, 0.5, 1)}, AddRemove, 1e-5},
		{[]Mechanism{gaussian(0.05, 0.5, 300)}, ReplaceOne, 1e-5},
		{[]Mechanism{gaussian(0.2, 1e-6, 1000000)}, AddRemove, 1e-6},
		{[]Mechanism{gaussian(1, 1e-4, 100000)}, ReplaceOne, 1e-9},
		{[]Mechanism{gaussian(500, 0.5, 1000000)}, AddRemove, 1e-60},
		{[]Mechanism{gaussian(2, 0.01, 100), noised(Laplace, 0.001, 3)}, AddRemove, 1e-5},
		{[]Mechanism{noised(Laplace, 1e4, 100000)}, ReplaceOne, 1e-8},
		{[]Mechanism{noised(Laplace, 3, 7), noised(Laplace, 11, 40), noised(Laplace, 0.7, 1)}, AddRemove, 1e-7},
	} {
		bound, _, err := epsilonRDP(c.ms, c.a, c.delta)
		if err != nil {
			t.Fatal(err)
		}
		e, err := Epsilon(c.ms, c.a, c.delta)
		if err != nil || !(e > 0 && e <= bound*(1+1e-4)) {
			t.Errorf("%+v: ε %v, error %v, Rényi %v", c, e, err, bound)
		}
	}
}

func TestMu(t *testing.T) {
	mu, ok := Mu([]Mechanism{gaussian(2, 1, 4), {Kind: Gaussian, Noise: 4, Rate: 1, Diameter: math.Sqrt2, Count: 8}},
		ReplaceOne)
	if want := math.Sqrt(4 + 1); !ok || math.Abs(mu-want) > 1e-15*want {
		t.Errorf("μ %v, %v, want %v", mu, ok, want)
	}
	if _, ok := Mu([]Mechanism{gaussian(2, 0.5, 4)}, AddRemove); ok {
		t.Error("a sampled Gaussian has a μ")
	}
}

func ExampleEpsilon() {
	// 3 views, 100 rounds: two Gaussian and one Laplace mechanism each, of
	// (10, 0.01) by Zhao et al. A theorem that looks at one round says (90, 0.06).
	ms := []Mechanism{
		{Kind: Gaussian, Noise: 0.38506173281723655, Rate: 1, Diameter: 2, Count: 600},
		{Kind: Laplace, Noise: 0.1, Rate: 1, Diameter: 2, Count: 300},
	}
	epsilon, err := Epsilon(ms, AddRemove, 0.01)
	fmt.Printf("%.0f %v\n", epsilon, err)
	// Output: 4885 <nil>
}
