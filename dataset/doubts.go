package dataset

import (
	"cmp"
	"fmt"
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

func (e *extremes) add(v float64) {
	if len(e.low) == edge && v > e.low[edge-1].value && v < e.high[edge-1].value {
		return
	}
	e.low = insert(e.low, v, func(a, b float64) bool { return a < b })
	e.high = insert(e.high, v, func(a, b float64) bool { return a > b })
}

func insert(list []extreme, v float64, before func(a, b float64) bool) []extreme {
	at := 0
	for at < len(list) && before(list[at].value, v) {
		at++
	}
	if at < len(list) && list[at].value == v {
		list[at].n++
		return list
	}
	if at == edge {
		return list
	}
	if list = slices.Insert(list, at, extreme{v, 1}); len(list) > edge {
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

func (o *often) add(v float64) {
	least := 0
	for i := range o.used {
		if o.list[i].value == v {
			o.list[i].n++
			return
		}
		if o.list[i].n < o.list[least].n {
			least = i
		}
	}
	if o.used < len(o.list) {
		o.list[o.used] = counted{v, 1, 0}
		o.used++
		return
	}
	o.list[least] = counted{v, o.list[least].n + 1, o.list[least].n}
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
	slices.SortFunc(list, func(a, b extreme) int { return cmp.Or(cmp.Compare(b.n, a.n), cmp.Compare(a.value, b.value)) })
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
}

const longestEnding = 3

func (c *rowsOf) add(id string) {
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
// than three times their range, and one digit above them can be a code too.
func (f *FeatureSummary) Codes() []string {
	var codes []string
	for _, s := range f.suspects() {
		codes = append(codes, strconv.FormatFloat(s.code, 'f', -1, 64))
	}
	return codes
}

// SuspectCodes returns those of the values that look like codes for missing values, as
// [FeatureSummary.Codes] has it.
func SuspectCodes(values []float64) (codes []float64) {
	f := FeatureSummary{ends: &extremes{}}
	for _, v := range values {
		f.ends.add(v)
	}
	for _, s := range f.suspects() {
		codes = append(codes, s.code)
	}
	return codes
}

func (f *FeatureSummary) suspects() (found []suspect) {
	if f.ends == nil {
		return nil
	}
	low, high := f.ends.low, f.ends.high
	k := leading(low, func(v float64) bool { return v < 0 && isCode(v) })
	l := leading(high, func(v float64) bool { return v > 0 && isCode(v) })
	for ; l > 0; l-- {
		code, rest, reach := high[l-1].value, f.distinct()-k-l, high[l].value-low[k].value
		if rest >= 3 && code > 9 && code-high[l].value > reach || rest == 2 && code-high[l].value > 3*reach {
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
		code := strconv.FormatFloat(c.code, 'f', -1, 64)
		list.Add(problem.Problem{Where: where, What: fmt.Sprintf("%s, at %d of %d subjects, looks like a code for a missing value", code, c.subjects, f.Observed),
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

// isCode says whether a number is written with one digit only, 7, 8 or 9, or is −1.
func isCode(v float64) bool {
	if v == -1 {
		return true
	}
	if v != math.Trunc(v) || math.Abs(v) > 1e6 {
		return false
	}
	digits := strconv.FormatFloat(math.Abs(v), 'f', -1, 64)
	return strings.Contains("789", digits[:1]) && strings.Trim(digits, digits[:1]) == ""
}

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
	if low[0].value != 0 || low[0].n < 2 || 4*low[0].n > 3*f.Observed || !(low[1].value > low[edge-1].value-low[1].value) {
		return 0
	}
	return low[0].n
}

// skewed says whether a feature without negative values has a standard deviation above its
// mean, so that a few large values decide what a mean or a product says. No symmetric
// distribution of such values has it.
func (f *FeatureSummary) skewed() bool {
	return f.ends != nil && f.Observed >= 30 && len(f.ends.low) == edge && f.Moments.Min >= 0 && f.Moments.SD > f.Moments.Mean
}

// heaped is the share of values at one end from which on it is a floor or a ceiling (Terwee et
// al., Journal of Clinical Epidemiology 60, 2007).
const heaped = 0.15

// atAnEnd counts the values that are the lowest of all, or the highest, if these are more than
// heaped of the values and there are six different ones or more: a limit of detection or of a scale.
func (f *FeatureSummary) atAnEnd() (n int64, end string) {
	if f.ends == nil || f.Observed < 30 || len(f.ends.low) < edge {
		return 0, ""
	}
	n, end = f.ends.low[0].n, "lowest"
	if high := f.ends.high[0].n; high > n {
		n, end = high, "highest"
	}
	if float64(n) <= heaped*float64(f.Observed) {
		return 0, ""
	}
	return n, end
}

// repeated counts, perhaps a few too low, a value between others that is more than heaped of the values and four times as
// many as are of any other but one, as where missing values were filled in with a mean, or with one
// for each of two groups. Forty hours of work a week are as frequent: so the others hardly repeat,
// or are written with fewer digits.
func (f *FeatureSummary) repeated() int64 {
	if f.ends == nil || f.Observed < 30 || len(f.ends.low) < edge {
		return 0
	}
	top := f.often.top()
	first, third := top[0], top[2]
	if first.value == f.Moments.Min || first.value == f.Moments.Max || float64(first.n) <= heaped*float64(f.Observed) || first.n <= 4*third.n {
		return 0
	}
	if 50*third.n <= f.Observed || !slices.ContainsFunc(top[2:], func(e extreme) bool { return decimals(e.value) >= decimals(first.value) }) {
		return first.n
	}
	return 0
}

// cramped says whether all values lie within a tenth of the column's range.
func (f *FeatureSummary) cramped() bool {
	return f.limit != nil && f.Observed >= 30 && f.Moments.Max > f.Moments.Min && 10*(f.Moments.Max-f.Moments.Min) < f.limit[1]-f.limit[0]
}

// decimals is how many digits after the point say a number.
func decimals(v float64) int {
	_, after, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return len(after)
}

// Doubts returns what makes a person look again before the data are used: values that
// look like codes for missing ones, in columns of the subjects too, subjects who are copies of others or look like visits of one person, values far from all others,
// more than one in a hundred beyond the plan's range or all in a small part of it, and values that are
// one and the same. Codes are quoted, and no other value. Clean data hardly ever have any.
func (s *Summary) Doubts() (list problem.List) {
	if s.Copies > 0 {
		list.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d have the values of another in every feature", s.Copies, s.Subjects),
			Hint: "were rows copied under other ids? A person who counts twice makes intervals too narrow"})
	}
	if v := s.visits; v != nil {
		hint := "are rows visits of one person, or members of a family? Each counts as a subject of its own, which makes standard errors and intervals too narrow: keep one row of each person"
		if s.Worth != nil {
			hint = s.Worth(v.most)
		}
		list.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d have ids that are alike but for their endings, such as %s", v.rows, s.Subjects, v.example), Hint: hint})
	}
	for _, c := range s.Columns {
		if c.number != nil {
			list = append(list, c.number.codes("subjects, column "+c.Name, func(string) string {
				return "leave such cells empty, and list the column in the plan under complete_cases"
			})...)
		}
	}
	for _, v := range s.Views {
		var beyond, repeated, cramped []string
		for i := range v.Features {
			f := &v.Features[i]
			where := "view " + v.Name + ", feature " + f.Name
			suspects, zeros := f.suspects(), f.bareZeros()
			if n := f.repeated(); n > 0 && len(suspects) == 0 {
				repeated = append(repeated, fmt.Sprintf("%s (at least %d of %d)", f.Name, n, f.Observed))
			}
			list = append(list, f.codes(where, func(code string) string {
				return fmt.Sprintf("list it in the plan: {name: %s, missing: [%s]}", f.Name, code)
			})...)
			if zeros > 0 {
				list.Add(problem.Problem{Where: where, What: fmt.Sprintf("0, at %d of %d subjects, is apart from all other values, which are positive", zeros, f.Observed),
					Hint: fmt.Sprintf("if it stands for a missing value, list it in the plan: {name: %s, missing: [0]}", f.Name)})
			}
			if f.Beyond > f.Observed/100 {
				beyond = append(beyond, fmt.Sprintf("%s (%d of %d)", f.Name, f.Beyond, f.Observed))
			}
			if f.cramped() {
				cramped = append(cramped, f.Name)
			}
			if n, how := f.outliers(); n > 0 && len(suspects) == 0 {
				list.Add(problem.Problem{Where: where, What: fmt.Sprintf("%d of %d values are far from the rest: %.2g times as far as the rest reaches", n, f.Observed, how),
					Hint: "is it another unit, a missing decimal point or a code? 'parley data describe DATA --features' shows the range"})
			}
		}
		if len(beyond) > 0 {
			what := "values lie beyond the plan's range"
			if s.beyondRange != "" {
				what += ", " + s.beyondRange
			}
			list.Add(problem.Problem{Where: "view " + v.Name, What: what + ": " + problem.Names(beyond),
				Hint: "is it another unit? Otherwise give a range that is publicly known to hold nearly all values"})
		}
		if len(cramped) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "values take up less than a tenth of the plan's range: " + problem.Names(cramped),
				Hint: "is it another unit? Privacy noise and priors are in proportion to the range where it scales the values, and hide what varies little in it: give a range that is publicly known to hold nearly all values, and no wider one"})
		}
		if len(repeated) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "many values are one and the same, which others lie below and above: " + problem.Names(repeated),
				Hint: "were missing values filled in, by a mean for example? Leave such cells empty: values that were filled in hide how features go together, and intervals become too narrow"})
		}
	}
	return list
}

// Shapes returns features without doubts whose values neither a line nor a normal distribution
// describes: many at one end, and skewed ones. Clean data may well have some.
func (s *Summary) Shapes() (list problem.List) {
	for _, v := range s.Views {
		var ends, skewed []string
		for i := range v.Features {
			f := &v.Features[i]
			if len(f.suspects()) > 0 {
				continue
			}
			if n, end := f.atAnEnd(); n > 0 && f.bareZeros() == 0 {
				ends = append(ends, fmt.Sprintf("%s (%s: %d of %d)", f.Name, end, n, f.Observed))
			}
			if f.skewed() {
				skewed = append(skewed, f.Name)
			}
		}
		if len(ends) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "many values are all at one end: " + problem.Names(ends),
				Hint: "is it a limit of detection, or the end of a scale? What lies beyond is not known, and neither a line nor a normal distribution describes such a feature"})
		}
		if len(skewed) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "skewed, so that a few large values decide: " + problem.Names(skewed),
				Hint: "give their logarithms instead, at all sites; of values that can be 0, the logarithm of one more"})
		}
	}
	return list
}

// SmallCells returns a note if so few subjects are here, or have some set of views, that
// what a site releases without privacy can tell of single people.
func (s *Summary) SmallCells() (list problem.List) {
	if s.Subjects < SmallCell {
		few := fmt.Sprintf("there are only %d", s.Subjects)
		if s.Subjects == 1 {
			few = "there is only one"
		}
		list.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%s: without privacy, what leaves this site tells of single people", few),
			Hint: "join this site with another, or protect the study with privacy: {protection: differential, …}"})
		return list
	}
	sets, few := 0, int64(0)
	for _, p := range s.Patterns {
		if p.Subjects < SmallCell && len(p.Views) > 0 {
			sets, few = sets+1, few+p.Subjects
		}
	}
	if sets > 0 {
		list.Add(problem.Problem{Where: fmt.Sprintf("sets of views with fewer than %d subjects", SmallCell), What: fmt.Sprintf("%d; subjects who have them: %d", sets, few),
			Hint: fmt.Sprintf("without privacy how many they are is released: minimum: {pattern_subjects: %d} in the site's policy prevents that", SmallCell)})
	}
	return list
}
