package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Values by mpmath with 60 digits: log Φ(x) = log(erfc(−x/√2)/2), the Mills
// ratio √(π/2) exp(x²/2) erfc(x/√2).
var normalValues = []struct{ x, logCDF, mills float64 }{
	{-1e5, -5000000012.431864, 0},
	{-800, -320007.603551823366, 0},
	{-40, -804.608442013753788, 0},
	{-37.5, -707.668989317507191, 0},
	{-10, -53.2312851505124706, 0},
	{-3.0625, -6.81473647014808634, 0},
	{-3, -6.60772622151034954, 0},
	{-2.5, -5.0816482772786905, 0},
	{-1, -1.84102164500926351, 3.47705181170369447},
	{-0.25, -0.913061764811135055, 1.54837262154765818},
	{0, -0.693147180559945309, 1.25331413731550025},
	{0.5, -0.368946415288656393, 0.876364456453692347},
	{2.9375, -0.00165572080905733253, 0.310070707509359399},
	{3, -0.0013508099647481938, 0.304590298710103296},
	{6, -9.86587645524375732e-10, 0.162377660896867462},
	{30, -4.90671392714818706e-198, 0.0332964190724972134},
}

func agree(got, want, tolerance float64) bool {
	return got == want || math.Abs(got-want) <= tolerance*math.Abs(want)
}

func TestLogNormalCDFAndMillsRatio(t *testing.T) {
	for _, v := range normalValues {
		// Above 0, log Φ is as sensitive to x as a small upper tail is.
		if got := LogNormalCDF(v.x); !agree(got, v.logCDF, 2e-15*(1+max(0, v.x*v.x))) {
			t.Errorf("log Φ(%v) = %v, want %v", v.x, got, v.logCDF)
		}
		if v.x < -1 {
			continue
		}
		if got := MillsRatio(v.x); !agree(got, v.mills, 4e-15) {
			t.Errorf("Mills ratio at %v is %v, want %v", v.x, got, v.mills)
		}
	}
	if LogNormalCDF(math.Inf(1)) != 0 || !math.IsInf(LogNormalCDF(math.Inf(-1)), -1) {
		t.Error("log Φ is wrong at infinity")
	}
}

// The slope of the Mills ratio satisfies R′ = xR − 1; where that cancels, it
// is between the bounds 1/(x²+3) < 1 − xR < 1/(x²+1).
func TestMillsSlope(t *testing.T) {
	for x := -1.0; x < 3; x += 0.13 {
		if got, want := MillsSlope(x), 1-x*MillsRatio(x); !agree(got, want, 1e-13) {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	for x := 3.0; x < 1e4; x *= 1.3 {
		if got := MillsSlope(x); !(got > 1/(x*x+3) && got < 1/(x*x+1)) {
			t.Errorf("at %v: %v is not between %v and %v", x, got, 1/(x*x+3), 1/(x*x+1))
		}
	}
	if a, b := MillsSlope(math.Nextafter(3, 0)), MillsSlope(3); !agree(a, b, 1e-13) {
		t.Errorf("the slope jumps at 3 from %v to %v", a, b)
	}
}

// Computed with 60 decimal digits (recurrence to x + 60, then the asymptotic
// series with 19 terms) and rounded once.
var known = []struct{ x, psi, logMinus float64 }{
	{1e-8, -100000000.57721564, 99999982.1565349},
	{0.001, -1000.5755719318103, 993.6678166528282},
	{0.1, -10.423754940411076, 8.12116984741703},
	{0.5, -1.9635100260214235, 1.2703628454614782},
	{1, -0.5772156649015329, 0.5772156649015329},
	{1.2, -0.2890398965921884, 0.47136145338614294},
	{1.4, -0.06138454458511624, 0.3978567812063291},
	{1.4616, -3.110625123034165e-05, 0.37956283233289023},
	{1.5, 0.03648997397857652, 0.3689751341295879},
	{1.7, 0.2085478748734939, 0.32208037618867646},
	{2, 0.42278433509846713, 0.27036284546147815},
	{3.3, 1.0348224890596216, 0.15909997941281281},
	{10, 2.251752589066721, 0.05083250392732458},
	{11.9, 2.4339335368825377, 0.04260486323494624},
	{12, 2.442661679975812, 0.042244969812188296},
	{100, 4.600161852738087, 0.005008333250003967},
	{1e6, 13.815510057964191, 5.000000833333334e-07},
	{1e12, 27.63102111592805, 5.000000000000833e-13},
	{257159578.2, 19.365207375068113, 1.9443180138333773e-09},
}

func closeTo(t *testing.T, name string, x, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol*math.Abs(want)) {
		t.Errorf("%s(%v) = %v, want %v (relative error %.1e)", name, x, got, want, math.Abs(got-want)/math.Abs(want))
	}
}

func TestKnownValues(t *testing.T) {
	for _, k := range known {
		closeTo(t, "digamma", k.x, digamma(k.x), k.psi, 3e-15)
		closeTo(t, "LogMinusDigamma", k.x, LogMinusDigamma(k.x), k.logMinus, 1e-14)
	}
}

func TestRecurrence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-15, 15).Draw(t, "ln x"))
		scale := max(1, 1/x)
		if d := digamma(x+1) - digamma(x) - 1/x; math.Abs(d) > 1e-14*scale {
			t.Fatalf("ψ(x+1) − ψ(x) − 1/x = %v at %v", d, x)
		}
	})
}

func TestOutsideTheDomain(t *testing.T) {
	for _, x := range []float64{0, -1, math.Inf(-1), math.NaN()} {
		if !math.IsNaN(digamma(x)) {
			t.Errorf("a value at %v", x)
		}
	}
	if !math.IsInf(digamma(math.Inf(1)), 1) {
		t.Error("the wrong limit at infinity")
	}
}

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
