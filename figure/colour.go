package figure

import (
	"fmt"
	"math"
)

// Colours of text, lines and things that are not there.
const (
	ink   = "#1f2933"
	muted = "#5b6770" // contrast 5.7 : 1 on white
	rule  = "#c5ccd3"
	grid  = "#e6eaed"
	blank = "#f3f4f5"
	hatch = "#b3bac1"
)

// palette is that of Okabe and Ito (2008), told apart with every common kind
// of colour blindness, without its yellow, which is too faint on white, and
// ordered so that neighbours differ in lightness too.
var palette = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d"}

// style tells series apart by colour, marker and dashes at once, so that a
// print without colour still reads.
type style struct {
	colour string
	marker int
	dash   string
}

func styleOf(i int) style {
	dashes := []string{"", "6 3", "2 3", "9 3 2 3", "4 2"}
	k := len(palette)
	return style{palette[i%k], (i + i/k) % markers, dashes[i/k%len(dashes)]}
}

// ramp returns the colour for t in 0..1: from almost white to deep blue, in
// equal steps of lightness (OKLab, Ottosson 2020), so that equal differences
// look equal and a print without colour keeps the order. On a dark colour
// white text reads better than black; the better has a contrast of 4.5 : 1 or
// more.
func ramp(t float64) (colour string, dark bool) {
	t = min(max(t, 0), 1)
	lightness := 0.985 - 0.635*t
	chroma := 0.012 + 0.118*math.Sin(math.Pi*min(t*0.62, 1))
	hue := (195 + 65*t) * math.Pi / 180
	return oklab(lightness, chroma*math.Cos(hue), chroma*math.Sin(hue)), lightness < 0.565
}

// wash returns the colour for t in 0..1 from almost white to a middle grey, in equal
// steps of lightness: a ground on which the palette stands out.
func wash(t float64) string {
	t = min(max(t, 0), 1)
	return oklab(0.985-0.345*t, -0.004-0.004*t, -0.006-0.014*t)
}

// diverge returns the colour for t in −1..1: almost white at zero, to brown
// below and to blue above, in equal steps of lightness on both sides. The two
// hues are told apart with every common kind of colour blindness; a print
// without colour keeps the distance from zero.
func diverge(t float64) (colour string, dark bool) {
	size := min(math.Abs(t), 1)
	lightness := 0.985 - 0.565*size
	chroma := 0.004 + 0.121*math.Sin(math.Pi*0.62*size)
	hue, darkest := 250*math.Pi/180, 0.565
	if t < 0 {
		hue, darkest = 52*math.Pi/180, 0.575
	}
	return oklab(lightness, chroma*math.Cos(hue), chroma*math.Sin(hue)), lightness < darkest
}

// oklab converts to #rrggbb, cut to what sRGB can show.
func oklab(lightness, a, b float64) string {
	cube := func(v float64) float64 { return v * v * v }
	l := cube(lightness + 0.3963377774*a + 0.2158037573*b)
	m := cube(lightness - 0.1055613458*a - 0.0638541728*b)
	s := cube(lightness - 0.0894841775*a - 1.2914855480*b)
	channel := func(v float64) int {
		if v = min(max(v, 0), 1); v <= 0.0031308 {
			v *= 12.92
		} else {
			v = 1.055*math.Pow(v, 1/2.4) - 0.055
		}
		return int(math.Round(255 * v))
	}
	return fmt.Sprintf("#%02x%02x%02x",
		channel(4.0767416621*l-3.3077115913*m+0.2309699292*s),
		channel(-1.2684380046*l+2.6097574011*m-0.3413193965*s),
		channel(-0.0041960863*l-0.7034186147*m+1.7076147010*s))
}
