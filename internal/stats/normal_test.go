package stats

import (
	"math"
	"testing"
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
