package figure

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Numbers is a list of values in which NaN, ±Inf and values beyond ±1e300
// stand for "not available". In JSON those are null.
type Numbers []float64

// MarshalJSON writes null for what is not available.
func (n Numbers) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("null"), nil
	}
	p := make([]*float64, len(n))
	for i := range n {
		if available(n[i]) {
			p[i] = &n[i]
		}
	}
	return json.Marshal(p)
}

// UnmarshalJSON reads null as NaN.
func (n *Numbers) UnmarshalJSON(b []byte) error {
	var p []*float64
	if err := json.Unmarshal(b, &p); err != nil {
		return err
	}
	*n = nil
	if p != nil {
		*n = make(Numbers, len(p))
	}
	for i, v := range p {
		(*n)[i] = math.NaN()
		if v != nil {
			(*n)[i] = *v
		}
	}
	return nil
}

// at returns value i, or NaN if there is none.
func (n Numbers) at(i int) float64 {
	if i < 0 || i >= len(n) || !available(n[i]) {
		return math.NaN()
	}
	return n[i]
}

// available reports whether v can be drawn. The bound keeps differences of
// two values, and their squares' roots, finite.
func available(v float64) bool { return math.Abs(v) <= 1e300 }

// Format says how a number is shown to people. Files always hold full
// precision.
type Format string

const (
	General Format = ""        // four significant digits
	Count   Format = "count"   // a whole number, its digits in groups of three
	Percent Format = "percent" // a fraction, shown multiplied by 100 with one decimal
	Score   Format = "score"   // three decimals, for what is about 1 at most
	P       Format = "p"       // a p value as journals show it
	Own     Format = "own"     // as General; each interval to digits of its own, as rows are in different units
)

// Text formats v for people: "n/a" if it is not available.
func (f Format) Text(v float64) string {
	if !available(v) {
		return "n/a"
	}
	var s string
	switch {
	case f == Count && math.Abs(v) < 1e15:
		s = groupDigits(strconv.FormatFloat(v, 'f', 0, 64))
	case f == Score && math.Abs(v) < 1e4:
		s = strconv.FormatFloat(v, 'f', 3, 64)
	case f == Percent && math.Abs(v) < 1e4:
		s = strconv.FormatFloat(100*v, 'f', 1, 64) + " %"
	case f == Percent:
		s = general(100*v) + " %"
	case f == P && v < 0.0001:
		s = "<0.0001"
	case f == P && v < 0.1:
		s = strconv.FormatFloat(v, 'f', 4, 64)
	case f == P:
		s = strconv.FormatFloat(v, 'f', 2, 64)
	default:
		s = general(v)
	}
	return minus(s)
}

// cell is the short form for the cells of a chart, where the unit is stated
// once, beside it.
func (f Format) cell(v float64) string {
	s := f.Text(v)
	if f == General && math.Abs(v) < 9.995 {
		return minus(strconv.FormatFloat(v, 'f', 2, 64))
	}
	if f != Percent || !available(v) {
		return s
	}
	if a := math.Abs(v); a >= 0.0995 && a < 1e4 {
		return minus(strconv.FormatFloat(100*v, 'f', 0, 64))
	}
	return strings.TrimSuffix(s, " %")
}

// general keeps four significant digits, without an exponent where that is
// short enough to read.
func general(v float64) string {
	if a := math.Abs(v); a >= 1e-4 && a < 1e6 {
		s := strconv.FormatFloat(v, 'f', max(3-exponent(v), 0), 64)
		if strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if v == 0 {
		return "0"
	}
	return shortExponent(strconv.FormatFloat(v, 'e', 3, 64))
}

// shortExponent turns 1.500e+06 into 1.5e6.
func shortExponent(s string) string {
	mantissa, exponent, ok := strings.Cut(s, "e")
	if !ok {
		return s
	}
	if strings.Contains(mantissa, ".") {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	sign := ""
	if exponent[0] == '-' {
		sign = "-"
	}
	return mantissa + "e" + sign + strings.TrimLeft(exponent, "+-0")
}

// groupDigits parts the digits of a whole number with narrow no-break spaces.
func groupDigits(s string) string {
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return sign + s
}

// minus sets a true minus sign, and none before zero.
func minus(s string) string {
	if strings.HasPrefix(s, "-") && !strings.ContainsAny(s, "123456789") {
		s = s[1:]
	}
	return strings.ReplaceAll(s, "-", "−")
}

// around writes a value with the ends of an interval around it, to the digits that
// the interval leaves.
func around(v, low, high float64) string {
	value, ends := interval(General, v, low, high, high-low)
	return value + " (" + ends + ")"
}

// interval formats a value and the ends of an interval around it, with two digits
// of a width: the interval's, or that of others beside it.
func interval(f Format, v, low, high, width float64) (value, ends string) {
	if !available(v) {
		return f.Text(v), ""
	}
	if !available(low) || !available(high) || !(width > 0) {
		return f.Text(v), f.Text(low) + " to " + f.Text(high)
	}
	unit := ""
	if f == Percent && max(math.Abs(low), math.Abs(high)) < 1e4 {
		v, low, high, width, unit = 100*v, 100*low, 100*high, 100*width, " %"
	}
	step := math.Pow(10, float64(exponent(width*(1+1e-9))-1)) // 0.3 − 0.2 is a little less than 0.1
	if f == Count {
		step = max(step, 1)
	}
	text := func(x float64) string { return tickLabel(x, step, max(math.Abs(v), math.Abs(low), math.Abs(high))) }
	return text(v) + unit, text(low) + " to " + text(high)
}

// Exact adds numbers to a record, with as many digits as bring them back.
func Exact(record []string, numbers ...float64) []string {
	for _, x := range numbers {
		record = append(record, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return record
}

// Plural says in words how many things there are, whose name takes an s if they are not
// one: 1 site, 3 sites.
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
