package dataset

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"

	"parley/internal/tabular"
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
	if bytes.ContainsAny(cell, "xX_") { // Go's own spellings
		return 0, false
	}
	v, err := strconv.ParseFloat(string(cell), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

// isMissing reports whether a cell, without the space around it, stands for a
// measurement that was not made.
func isMissing(cell []byte) bool {
	if len(cell) > 0 && cell[0] >= utf8.RuneSelf {
		return len(bytes.TrimFunc(cell, unseen)) == 0
	}
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

func unseen(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }

// appendNumber writes a number so that reading it gives the same bits: the
// shortest decimal, without exponent where that keeps it on the fast path.
func appendNumber(b []byte, v float64) []byte { return tabular.AppendFloat(b, v, 64) }

// IsMissing reports whether a cell of a subject column stands for what is not known: it is
// empty, NA, NaN or null, whatever the case.
func IsMissing(cell string) bool { return isMissing([]byte(cell)) }

var (
	// A number in any spelling: a bound, a sign, digits with separators, what follows.
	anyNumber = regexp.MustCompile(`^([<>≤≥~≈=]*) *([-+−–]?)(\d[\d.,' ` +
		`’\x{a0}\x{202f}]*|[.,]\d+)((?:[eE][-+]?\d+)?)(.*)$`)
	// a unit, an error, or a laboratory's mark of what is high or low
	unit      = regexp.MustCompile(`^( \pL[\pL\d./%^·*µ²³-]*| ?[%‰°]\pL{0,2}|\pL+/[\pL\d./²³]+| ?±.*| ?(H+|L+|\*+))$`)
	thousands = regexp.MustCompile(`^\d{1,3}(?:([.,' ’])\d{3})+$`)
	isDate    = regexp.MustCompile(`^(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/. ](\d{1,2}|\pL{3,9})[-/. ` +
		`](\d{2}|\d{4}))([T ].*)?$`)
)

// otherwise says how a cell that is no number here is one to a person, and how to write
// it: "9,81" has a decimal comma, "5.1 mg/l" a unit, "<0.5" is a bound. Both are "" for
// every other cell.
func otherwise(cell string) (what, hint string) {
	cell = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		return r
	}, cell)
	narrow := width.Fold.String(cell)
	usual := strings.Map(func(r rune) rune {
		switch {
		case r >= '٠' && r <= '٩', r >= '۰' && r <= '۹': // as Arabic and Persian are written
			return '0' + r&0xf
		case r == '٫', r == '·':
			return '.'
		}
		return r
	}, strings.TrimSuffix(strings.TrimLeft(narrow, `='"`), `"`)) // ="5", '5 and ５
	if _, ok := parseNumber([]byte(usual)); ok && !isMissing([]byte(usual)) && usual != strings.TrimSpace(cell) {
		return "has other characters than digits, a sign and a point", "write " + usual
	}
	m := anyNumber.FindStringSubmatch(strings.TrimSpace(narrow))
	if m == nil || isDate.MatchString(cell) || strings.Contains(m[3], ", ") { // of two numbers
		return "", ""
	}
	bound, sign, digits, exponent := m[1], m[2], strings.TrimRight(m[3], " "), m[4]
	behind := strings.TrimRight(m[3][len(digits):]+m[5], " ")
	plain := strings.NewReplacer(" ", "", "'", "", "’", "").Replace(digits)
	point, comma := strings.LastIndex(plain, "."), strings.LastIndex(plain, ",")
	grouped, fraction := thousands.MatchString(digits), point >= 0 && comma >= 0
	if fraction {
		grouped = thousands.MatchString(digits[:strings.LastIndexAny(digits, ".,")])
	}
	switch {
	case fraction && grouped && comma > point: // 1.234,5
		plain, what = strings.ReplaceAll(strings.ReplaceAll(plain, ".", ""), ",", "."),
			"has a decimal comma and separators of thousands"
	case fraction && grouped: // 1,234.5
		plain, what = strings.ReplaceAll(plain, ",", ""), "has separators of thousands"
	case strings.Count(plain, ",") == 1 && point < 0:
		plain, what = strings.Replace(plain, ",", ".", 1), "has a decimal comma"
	case grouped && (comma >= 0 || strings.Count(plain, ".") > 1 || plain != digits): // 1.234.567
		plain, what = strings.NewReplacer(".", "", ",", "").Replace(plain), "has separators of thousands"
	case plain != digits:
		return "", ""
	}
	v, err := strconv.ParseFloat(plain+exponent, 64)
	switch {
	case err != nil || behind != "" && !unit.MatchString(behind):
		return "", ""
	case behind != "":
		what = "has " + strings.TrimSpace(behind) + " behind the number"
	case bound != "" && strings.Trim(bound, "~≈=") == "":
		what, bound = "has "+bound+" before the number", ""
	case bound != "":
		what = "is a bound and not a value"
	case what == "" && strings.ContainsAny(sign, "−–"):
		what = "has a dash in place of the minus sign"
	case what == "":
		what = "has a space that is not a usual one"
	}
	right := plain + exponent
	if sign != "" && sign != "+" {
		right = "-" + right
	}
	switch {
	case strings.ContainsAny(bound, ">≥"):
		hint = fmt.Sprintf("leave the cell empty, or agree on a number at all sites, such as the limit: %g", v)
	case bound != "":
		hint = fmt.Sprintf("leave the cell empty, or agree on a number at all sites, such as half of the limit: %g",
			v/2)
	case what == "has a decimal comma" && grouped:
		hint = fmt.Sprintf("use a decimal point: %s, or write %s if the comma separates thousands", right,
			strings.ReplaceAll(right, ".", ""))
	case what == "has a decimal comma":
		hint = "use a decimal point: " + right
	default:
		hint = "write " + right
	}
	return what, hint
}
