package dataset

import (
	"bytes"
	"math"
	"strconv"
)

// pow10 holds the powers of ten that a float64 represents exactly.
var pow10 = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// scanNumber reads the decimal number at the start of b and says how many
// bytes it looked at. It is ok only where one division gives the correctly
// rounded value (Clinger 1990): mantissa ≤ 2⁵³ over a power of ten ≤ 10²².
// Both are then exact, so the result has the bits of strconv.ParseFloat.
func scanNumber(b []byte) (v float64, n int, ok bool) {
	i := 0
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		i = 1
	}
	var mantissa uint64
	first := i
	for i < len(b) && b[i]-'0' <= 9 {
		mantissa = mantissa*10 + uint64(b[i]-'0')
		i++
	}
	digits, decimals := i-first, 0
	if i < len(b) && b[i] == '.' {
		i++
		point := i
		for i < len(b) && b[i]-'0' <= 9 {
			mantissa = mantissa*10 + uint64(b[i]-'0')
			i++
		}
		decimals = i - point
		digits += decimals
	}
	// 19 digits cannot overflow the mantissa, which is compared afterwards.
	if digits == 0 || digits > 19 || mantissa > 1<<53 || decimals >= len(pow10) {
		return 0, i, false
	}
	v = float64(mantissa)
	if decimals > 0 {
		v /= pow10[decimals]
	}
	if negative {
		v = -v
	}
	return v, i, true
}

// parseNumber reads a cell of a number column: NaN where it is missing. Not ok
// means that it is no finite number.
func parseNumber(cell []byte) (v float64, ok bool) {
	if isMissing(cell) {
		return math.NaN(), true
	}
	if v, n, ok := scanNumber(cell); ok && n == len(cell) {
		return v, true
	}
	v, err := strconv.ParseFloat(string(cell), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// isMissing reports whether a cell, without the space around it, stands for a
// measurement that was not made.
func isMissing(cell []byte) bool {
	switch len(cell) {
	case 0:
		return true
	case 2:
		return bytes.EqualFold(cell, []byte("NA"))
	case 3:
		return bytes.EqualFold(cell, []byte("NaN"))
	case 4:
		return bytes.EqualFold(cell, []byte("null"))
	}
	return false
}

// appendNumber writes a number so that reading it gives the same bits: the
// shortest decimal, without exponent where that keeps it on the fast path.
func appendNumber(b []byte, v float64) []byte {
	if a := math.Abs(v); a == 0 || a >= 1e-5 && a < 1e15 {
		return strconv.AppendFloat(b, v, 'f', -1, 64)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// IsMissing reports whether a cell of a subject column stands for what is not known: it is
// empty, NA, NaN or null, whatever the case.
func IsMissing(cell string) bool { return isMissing([]byte(cell)) }
