package dataset

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/problem"
)

// SmallCell is the fewest subjects that a count may stand for without a note: fewer can
// be told apart. It is the default of DataSHIELD (nfilter.tab).
const SmallCell = 3

// edge is how many different values are kept at each end of a feature's range: three
// that may be apart, and three of those that they are apart from.
const edge = 6

// extremes are the lowest and the highest different values of a feature, outermost
// first, and how many subjects have each.
type extremes struct{ low, high []extreme }

type extreme struct {
	value float64
	n     int64
}

func (e *extremes) add(v float64, n int64) {
	if len(e.low) == edge && v > e.low[edge-1].value && v < e.high[edge-1].value {
		return
	}
	e.low = insert(e.low, extreme{v, n}, func(a, b float64) bool { return a < b })
	e.high = insert(e.high, extreme{v, n}, func(a, b float64) bool { return a > b })
}

func insert(list []extreme, e extreme, before func(a, b float64) bool) []extreme {
	at := 0
	for at < len(list) && before(list[at].value, e.value) {
		at++
	}
	if at < len(list) && list[at].value == e.value {
		list[at].n += e.n
		return list
	}
	if at == edge {
		return list
	}
	if list = slices.Insert(list, at, e); len(list) > edge {
		list = list[:edge]
	}
	return list
}

// often counts the values of a feature that occur most: all of those that more than a
// sixteenth of them are, but for their first few (Metwally, Agrawal and El Abbadi, ICDT 2005).
type often struct {
	list [16]counted
	used int
}

type counted struct {
	value float64
	n     int64 // at most how often
	extra int64 // of these: other values whose place it took
}

func (o *often) add(v float64, n int64) {
	least := 0
	for i := range o.used {
		if o.list[i].value == v {
			o.list[i].n += n
			return
		}
		if o.list[i].n < o.list[least].n {
			least = i
		}
	}
	if o.used < len(o.list) {
		o.list[o.used] = counted{v, n, 0}
		o.used++
		return
	}
	o.list[least] = counted{v, o.list[least].n + n, o.list[least].n}
}

// many reports whether so many values are of more kinds than are counted, or most are of their own.
func (o *often) many(values int64) bool {
	return o.used == len(o.list) || 2*int64(o.used) > values
}

// top returns the most frequent values first, each with at least how often it occurs.
func (o *often) top() []extreme {
	var list []extreme
	for _, c := range o.list[:o.used] {
		list = append(list, extreme{c.value, c.n - c.extra})
	}
	slices.SortFunc(list, func(a, b extreme) int {
		return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.value, b.value))
	})
	return list
}

// rowsOf counts subjects whose ids, in their order, are alike but for an ending of up to three characters
// after a separator, as p017-1 and p017-2 of two visits are. What is alike has a digit: else it may be the
// name of a place.
type rowsOf struct {
	stem           string
	run, most      int64 // of the stem, so far; and of any stem
	people, rows   int64 // stems of two ids or more, and ids with such stems
	first, example string
	keys           map[uint64]bool // of ids, as spellings are compared
	again          int64           // ids that differ from another only in spelling
	alike          string          // the last of them
}

const longestEnding = 3

func (c *rowsOf) add(id string) {
	switch h := maphash.String(hashed, problem.Key(id)); {
	case c.keys[h]:
		c.again, c.alike = c.again+1, id
	case c.keys == nil:
		c.keys = map[uint64]bool{h: true}
	case len(c.keys) < mostRows:
		c.keys[h] = true
	}
	stem, at := "", strings.LastIndexAny(id, "-_./: #")
	if at >= 0 && at < len(id)-1 && len(id)-1-at <= longestEnding && strings.ContainsAny(id[:at], "0123456789") {
		stem = id[:at]
	}
	if stem == "" || stem != c.stem {
		c.stem, c.run, c.first = stem, 1, id
		return
	}
	c.run++
	c.most = max(c.most, c.run)
	switch c.run {
	case 2:
		c.people, c.rows = c.people+1, c.rows+2
		if c.example == "" {
			c.example = c.first + " and " + id
		}
	default:
		c.rows++
	}
}

// manyRows is more rows than people have on average who came more than once.
const manyRows = 10

// visits returns the counts if ids look like those of rows of the same people, as where a tenth of subjects and
// ten have such ids; else nil.
func (c rowsOf) visits(subjects int64) *rowsOf {
	if c.rows >= 10 && 10*c.rows >= subjects && c.rows <= manyRows*c.people {
		return &c
	}
	return nil
}

// suspect is a value that may stand for "not measured".
type suspect struct {
	code     float64
	subjects int64
}

// Codes returns the values of the feature that look like codes for missing values, as a
// plan lists them: −1, or equal digits of 7, 8 or 9, at an end of the range. Below zero
// they are such where nothing else is negative; otherwise they are apart from the rest by
// more than its range. Where the rest are two values, a code is apart from them by more
// than three times their range, and one digit above them can be a code too; and so above grades,
// whole numbers one after the other, if three subjects or more have it, and it is as far from them as they reach.
func (f *FeatureSummary) Codes() []string {
	var codes []string
	for _, s := range f.suspects() {
		codes = append(codes, written(s.code))
	}
	return codes
}

// written is a number as a plan lists it.
func written(v float64) string { return string(appendNumber(nil, v)) }

func (f *FeatureSummary) suspects() (found []suspect) {
	if f.ends == nil {
		return nil
	}
	low, high := f.ends.low, f.ends.high
	k := leading(low, func(v float64) bool { return v < 0 && isCode(v) })
	l := leading(high, func(v float64) bool { return v > 0 && isCode(v) })
	for ; l > 0; l-- {
		code, rest, reach := high[l-1].value, f.distinct()-k-l, high[l].value-low[k].value
		gap, grades := code-high[l].value, low[k].value == math.Trunc(low[k].value) && reach == float64(rest-1)
		if rest >= 3 && code > 9 && gap > reach || rest == 2 && gap > 3*reach ||
			rest >= 3 && grades && code <= 9 && gap >= max(3, reach) && high[l-1].n >= 3 {
			break
		}
	}
	for ; k > 0; k-- {
		code, rest, reach := low[k-1].value, f.distinct()-k-l, high[l].value-low[k].value
		if rest >= 3 && (low[k].value >= 0 || low[k].value-code > reach) ||
			code <= -7 && (rest >= 1 && low[k].value >= 0 || rest == 2 && low[k].value-code > 3*reach) {
			break
		}
	}
	for _, e := range append(slices.Clone(low[:k]), high[:l]...) {
		found = append(found, suspect{e.value, e.n})
	}
	return found
}

// codes asks of each value that looks like a code whether it is one, and says what to do then.
func (f *FeatureSummary) codes(where string, then func(code string) string) (list problem.List) {
	for _, c := range f.suspects() {
		code := written(c.code)
		list.Add(problem.Problem{Where: where, What: fmt.Sprintf("%s, at %d of %d subjects, looks like a code for a "+
			"missing value", code, c.subjects, f.Observed),
			Hint: "if it is one, " + then(code)})
	}
	return list
}

// FewWhole says whether a number takes two to five different values, all whole: they may be codes
// of kinds and not amounts. Whether just 0 and 1 count is for the caller to say.
func (f *FeatureSummary) FewWhole(yesNo bool) bool {
	if f.ends == nil || len(f.ends.low) < 2 || len(f.ends.low) == edge {
		return false
	}
	if low := f.ends.low; !yesNo && len(low) == 2 && low[0].value == 0 && low[1].value == 1 {
		return false
	}
	return !slices.ContainsFunc(f.ends.low, func(e extreme) bool { return e.value != math.Trunc(e.value) })
}

// distinct is how many different values are known, at most the lengths of both ends.
func (f *FeatureSummary) distinct() int {
	all := map[float64]bool{}
	for _, e := range append(slices.Clone(f.ends.low), f.ends.high...) {
		all[e.value] = true
	}
	return len(all)
}

// leading counts the first values that are such, leaving one that is not.
func leading(list []extreme, such func(float64) bool) int {
	n := 0
	for n < min(3, len(list)-1) && such(list[n].value) {
		n++
	}
	return n
}

// isCode says whether a number is written with one digit only, 7, 8 or 9, or with nines around a point, is −1, or is
// what programs fill in: the ends of the integers, powers of ten from 10²⁰ on, and whatever exceeds 10³⁰, as the ends
// of floating-point numbers do.
func isCode(v float64) bool {
	size := math.Abs(v)
	if v == -1 || slices.Contains(fills, size) || size >= 1e30 || size >= 1e20 &&
		strings.HasPrefix(strconv.FormatFloat(size, 'e', -1, 64), "1e") {
		return true
	}
	digits := strconv.FormatFloat(size, 'f', -1, 64)
	if size > 1e12 {
		return false
	}
	if whole, part, ok := strings.Cut(digits, "."); ok {
		return size > 9 && strings.Trim(whole+part, "9") == ""
	}
	return strings.Contains("789", digits[:1]) && strings.Trim(digits, digits[:1]) == ""
}

// fills are sizes of such numbers: of 16, 32 and 64 bits, and Stata's missing values.
var fills = []float64{1 << 15, 1<<15 - 1, 1<<16 - 1, 1 << 31, 1<<31 - 1, 1<<31 - 2, 1 << 63, 4294967295, 2147483620,
	32741}

// outliers counts the values at the ends of the range, three different ones at each at
// most, that are further from the rest than three times as far as the rest reaches. There
// are at most a tenth of the values. how is that distance over the reach of the rest.
func (f *FeatureSummary) outliers() (n int64, how float64) {
	if f.ends == nil || f.Observed < 10 {
		return 0, 0
	}
	low, high := f.ends.low, f.ends.high
	best := func(k, l int) (apart float64) { // of k lowest and l highest
		reach := high[l].value - low[k].value
		apart = math.Inf(1)
		if k > 0 {
			apart = min(apart, low[k].value-low[k-1].value)
		}
		if l > 0 {
			apart = min(apart, high[l-1].value-high[l].value)
		}
		return apart / reach
	}
	for k := range 4 {
		for l := range 4 {
			if k+l == 0 || k+l+3 > f.distinct() || max(k+1, l+1) > len(low) {
				continue
			}
			var many int64
			for _, e := range append(slices.Clone(low[:k]), high[:l]...) {
				many += e.n
			}
			if apart := best(k, l); apart > 3 && many > n && 10*many <= f.Observed {
				n, how = many, apart
			}
		}
	}
	return n, how
}

// bareZeros counts the zeros of a feature whose other values are all positive and begin
// farther from zero than the five lowest of them reach: a blood pressure of 0. Where more
// than three quarters are zeros, it is rather an amount that few people have.
func (f *FeatureSummary) bareZeros() int64 {
	if f.ends == nil || len(f.ends.low) < edge {
		return 0
	}
	low := f.ends.low
	if low[0].value != 0 || low[0].n < 2 || 4*low[0].n > 3*f.Observed ||
		!(low[1].value > low[edge-1].value-low[1].value) {
		return 0
	}
	return low[0].n
}

// skewed says whether a feature without negative values has a standard deviation above its
// mean, so that a few large values decide what a mean or a product says. No symmetric
// distribution of such values has it.
func (f *FeatureSummary) skewed() bool {
	return f.ends != nil && f.Observed >= 30 && len(f.ends.low) == edge && !f.rating() && f.Moments.Min >= 0 &&
		f.Moments.SD > f.Moments.Mean
}

// rating says whether six or seven different values are all there are: the points of a rating.
func (f *FeatureSummary) rating() bool {
	return len(f.ends.low) == edge && f.ends.low[edge-1].value >= f.ends.high[1].value
}

// heaped is the share of values at one end from which on it is a floor or a ceiling (Terwee et
// al., Journal of Clinical Epidemiology 60, 2007).
const heaped = 0.15

// atAnEnd counts the values that are the lowest of all, or the highest, if these are more than heaped of the values and
// there are eight different ones or more: a limit of detection or of a scale. Of fewer, which are the points of a
// rating, the first and the last are as usual as any; and so are those of counts of which the next
// is as frequent, and of years.
func (f *FeatureSummary) atAnEnd() (n int64, end string) {
	if f.ends == nil || f.Observed < 30 || len(f.ends.low) < edge {
		return 0, ""
	}
	if f.rating() {
		return 0, ""
	}
	n, end = f.ends.low[0].n, "lowest"
	next := f.ends.low[1].n
	if high := f.ends.high[0].n; high > n {
		n, end, next = high, "highest", f.ends.high[1].n
	}
	years := f.Moments.Min >= 1900 && f.Moments.Max <= 2100 && f.forms.wholes == f.Observed
	if float64(n) <= heaped*float64(f.Observed) || n <= next || years {
		return 0, ""
	}
	return n, end
}

// repeated counts, perhaps a few too low, a value between others that is more than heaped of the values and four times
// as many as are of any other but one, as where missing values were filled in with a mean, or with one for each of two
// groups. Forty hours of work a week are as frequent: so the others hardly repeat, or are written with fewer digits.
func (f *FeatureSummary) repeated() int64 {
	if f.ends == nil || f.Observed < 30 || len(f.ends.low) < edge {
		return 0
	}
	top := f.often.top()
	first, third := top[0], top[2]
	if first.value == f.Moments.Min || first.value == f.Moments.Max || float64(first.n) <= heaped*float64(f.Observed) ||
		first.n <= 4*third.n {
		return 0
	}
	if 50*third.n <= f.Observed || !slices.ContainsFunc(top[2:], func(e extreme) bool {
		return decimals(e.value) >= decimals(first.value)
	}) {
		return first.n
	}
	return 0
}

// cramped says whether all values lie within a tenth of the column's range.
func (f *FeatureSummary) cramped() bool {
	return f.limit != nil && f.Observed >= 30 && f.Moments.Max > f.Moments.Min &&
		10*(f.Moments.Max-f.Moments.Min) < f.limit[1]-f.limit[0]
}

// decimals is how many digits after the point say a number.
func decimals(v float64) int {
	_, after, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return len(after)
}
