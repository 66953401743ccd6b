package dataset

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/problem"
)

// Of features whose sizes differ so much between sites, the unit is doubted.
const (
	unitRatio    = 8  // of medians: many units differ 10-fold or more, and sites can differ a little besides
	unitObserved = 10 // values that a site must have for it
)

const (
	// fewestStandardised is of how many features sums can tell that a site scaled them itself.
	fewestStandardised = 3
	// standardisedTo is how near a mean and a standard deviation are to 0 and 1, in their sampling
	// errors: of values that nobody scaled, both are as near in one feature of 150.
	standardisedTo = 0.1
)

// sizes counts the absolute values of a feature in classes of which each reaches 9 % above
// the one before on average: an eighth of a power of two.
type sizes struct {
	n     int64
	zeros int64
	below int64 // zero
	first int   // the class of the first count
	count []int64
}

// add puts a finite value that so many have into its class.
func (s *sizes) add(v float64, n int64) {
	s.n += n
	if v == 0 {
		s.zeros += n
		return
	}
	if v < 0 {
		s.below += n
	}
	class := int(math.Float64bits(math.Abs(v)) >> 49)
	switch at := class - s.first; {
	case s.count == nil:
		s.first, s.count = class, make([]int64, 1, 16)
	case at < 0:
		s.count = append(make([]int64, -at, -at+len(s.count)), s.count...)
		s.first = class
	case at >= len(s.count):
		s.count = append(s.count, make([]int64, at+1-len(s.count))...)
	}
	s.count[class-s.first] += n
}

// quantile is the middle of the class in which the given share of the values ends.
func (s *sizes) quantile(share float64) float64 {
	need := int64(math.Ceil(share*float64(s.n))) - s.zeros
	if need <= 0 {
		return 0
	}
	for i, n := range s.count {
		if need -= n; need <= 0 {
			return math.Float64frombits(uint64(s.first+i)<<49 | 1<<48)
		}
	}
	return math.Inf(1)
}

// Others is what several sites together show of their data.
type Others struct {
	Sites     []string
	Summaries []*Summary // of each, with one schema
}

// Doubts returns sites with the same rows, features that seem to have another unit at some
// sites than at the others, and columns that seem to be coded differently. It says how many times
// as large the values are, and quotes none.
func (o Others) Doubts() (list problem.List) {
	if len(o.Summaries) == 0 {
		return nil
	}
	same := map[[sha256.Size]byte]string{}
	for i, s := range o.Summaries {
		if other := same[s.Census.Fingerprint]; other != "" {
			list.Add(problem.Problem{Where: "sites " + other + " and " + o.Sites[i],
				What: "have the same rows, so that each person counts twice",
				Hint: "is one a copy of the other? leave it out of the plan"})
		}
		same[s.Census.Fingerprint] = o.Sites[i]
		for j, other := range o.Summaries[:i] {
			n, long := common(s.rows, other.rows)
			if !long && rare*int64(n) <= min(s.Subjects, other.Subjects) {
				n = 0
			}
			if n == 0 {
				n = repeats(s.alike, other.alike)
			}
			if n > 0 && s.Census.Fingerprint != other.Census.Fingerprint {
				list.Add(problem.Problem{Where: "sites " + o.Sites[j] + " and " + o.Sites[i],
					What: fmt.Sprintf("%s the same values in every feature at both",
						map[bool]string{true: "one subject has", false: fmt.Sprintf("%d subjects have", n)}[n == 1]),
					Hint: "does one person count twice?"})
			}
		}
	}
	all := make([][]*facts, len(o.Sites)) // by site and column
	for i, s := range o.Summaries {
		all[i] = s.facts()
	}
	table, views, scaled := "", 0, false
	for at, first := range all[0] {
		if table != first.table && first.feature {
			own := o.standardised(views)
			if scaled = own != nil; scaled {
				list.Add(problem.Problem{Where: first.table,
					What: "every feature has a mean of 0 and a standard deviation of 1 at " + problem.Names(own) +
						", and elsewhere not",
					Hint: "did these sites standardise their values? take them as they were measured, in the unit of " +
						"the others"})
			}
			views++
		}
		table = first.table
		of := make([]*facts, len(o.Sites))
		for i := range o.Sites {
			of[i] = all[i][at]
		}
		for _, d := range siteDoubts {
			if what, hint := d.see(o.Sites, of); what != "" && !(scaled && d.name == "signs") {
				list.Add(problem.Problem{Where: first.where(), What: what, Hint: hint})
				break // the others say the same in other words
			}
		}
	}
	return list
}

// siteDoubt is one reason to look again at a column of which the sites show such facts; "" for none. Each runs on every
// kind of column.
type siteDoubt struct {
	name string
	see  func(sites []string, of []*facts) (what, hint string)
}

var siteDoubts = []siteDoubt{
	{"one for each site", func(sites []string, of []*facts) (string, string) {
		var at []string
		values := map[string]bool{}
		for i, f := range of {
			if f.seen == 0 {
				continue
			}
			if len(f.levels) != 1 || f.seen < unitObserved || places.MatchString(problem.Key(f.name)) {
				return "", ""
			}
			at, values[f.levels[0].Name] = append(at, sites[i]), true
		}
		if len(values) < 2 || !of[0].feature && len(values) == len(at) && len(at) > 2 { // names of sites in other words
			return "", ""
		}
		return "takes one value at each site, and not the same at all: " + problem.Names(at),
			"it says at which site a subject is, and what else the sites differ by cannot be told from it; leave it " +
				"out, or see whether it is coded differently"
	}},
	{"units", func(sites []string, of []*facts) (string, string) {
		features := make([]*FeatureSummary, len(of))
		for i, f := range of {
			if features[i] = f.number; f.number == nil {
				features[i] = &FeatureSummary{}
			}
		}
		odd, rest, ratio := units(sites, features)
		if odd == nil {
			return "", ""
		}
		return fmt.Sprintf("values at %s are about %s times as large as at %s", problem.Names(odd), times(ratio),
				problem.Names(rest)),
			"is it another unit? write them the same way at all sites, or let 'mapping.yaml' convert them"
	}},
	{"signs", func(sites []string, of []*facts) (string, string) {
		var below, with, others int64
		var at []int
		for i, f := range of {
			switch {
			case f.number == nil || f.number.sizes == nil || len(f.number.suspects()) > 0:
			case f.number.sizes.below > 0:
				below, with, at = below+f.number.sizes.below, with+f.number.sizes.n, append(at, i)
			default:
				others += f.number.sizes.n
			}
		}
		if len(at) != 1 || float64(below)/float64(with)*float64(others) < few {
			return "", ""
		}
		return "values below zero stand at " + sites[at[0]] + " alone", "are they logarithms or standardised " +
			"values there, or differences? take them as the others do"
	}},
	{"levels", func(sites []string, of []*facts) (string, string) {
		levels := make([][]Level, len(of))
		if !of[0].feature && places.MatchString(problem.Key(of[0].name)) {
			return "", ""
		}
		for i, f := range of {
			if levels[i] = f.levels; f.number != nil && f.feature && f.number.often != nil && !f.number.FewWhole(true) {
				levels[i] = nil // amounts
			}
		}
		what, hint, _ := LevelsDiffer(sites, levels)
		return what, hint
	}},
}

// siteNames are keys of names of columns that say at which site a subject is.
var siteNames = regexp.MustCompile(`^(trial|study|(redcap)?data|clinic(al)?|recruiting|treating|inv|studien|prüf` +
	`|uni(versitäts)?)?(sites?|hospital|cent(re|er)|clinic|institut(e|ion)?|cohort|klinik(um)?|krankenhaus|spital|zentrum|standort|hôpital` +
	`|accessgroup)(id|nr|no|num|number|nummer|name|code|label)?$`)

// places are those, and of other places that subjects are from.
var places = regexp.MustCompile("country|region|" + siteNames.String())

// NamesSites says whether a column is called as those are that say at which site a subject is.
func NamesSites(column string) bool { return siteNames.MatchString(problem.Key(column)) }

// LevelsDiffer says how the levels of a column differ between sites as where they are written or coded differently; ""
// if they do not. Spellings of one key are such, at any number of subjects; two values at each site and not the same
// two; no value in common; and, not as sure, a level of one site alone while it lacks one of the others, as chance
// hardly makes.
func LevelsDiffer(sites []string, levels [][]Level) (what, hint string, sure bool) {
	const same = "write it the same way at all sites, or let 'mapping.yaml' do so"
	total, having := make([]int64, len(sites)), map[string]int{} // subjects; sites by level
	spelt := map[string]Level{}
	var at []int // sites with a value
	pairs, codes := map[string]bool{}, true
	for i := range sites {
		own := slices.DeleteFunc(slices.Clone(levels[i]), func(l Level) bool {
			return l.Subjects == 0 || IsMissing(l.Name)
		})
		if levels[i] = own; len(own) == 0 {
			continue
		}
		at = append(at, i)
		var names []string
		for _, l := range own {
			names = append(names, l.Name)
			total[i], having[l.Name] = total[i]+l.Subjects, having[l.Name]+1
			key := problem.Key(l.Name)
			if other, known := spelt[key]; known && other.Name != l.Name {
				one, two := problem.Spelt(other.Name, l.Name)
				return fmt.Sprintf("%s and %s seem to be the same, and are taken for two values (%s)", one, two,
					sites[i]), same, true
			}
			spelt[key] = l
		}
		slices.Sort(names)
		_, err := strconv.ParseFloat(names[0], 64)
		codes = codes && len(own) == 2 && total[i] >= unitObserved && err == nil
		pairs[strings.Join(names, "\x00")] = true
	}
	if codes && len(pairs) > 1 {
		return "takes two values, and not the same two, at " + namesAt(sites, at),
			"is it coded differently, such as 0 and 1 or 1 and 2? " + same, true
	}
	var apart []int
	for _, i := range at {
		n := int64(len(levels[i]))
		common := slices.ContainsFunc(levels[i], func(l Level) bool { return having[l.Name] > 1 })
		if n >= 2 && n <= 10 && !common && total[i] >= SmallCell*n && len(at) > 1 {
			apart = append(apart, i)
		}
	}
	if apart != nil {
		return "no other site has any of the values that stand at " + namesAt(sites, apart),
			"is it coded differently, such as f and m or 1 and 2? " + same, true
	}
	for _, i := range at {
		if alone, lacks := exchanged(levels, total, having, i, at); alone != "" {
			return fmt.Sprintf("%s alone has %q, and lacks %q, which %s", sites[i], alone, lacks, haveIt(sites, at, i)),
				"is it one value with two names? " + same, false
		}
	}
	return "", "", false
}

// few is how many subjects would have what none has, were shares alike: chance makes none of them in one of a thousand.
const few = 7

func namesAt(sites []string, at []int) string {
	var names []string
	for _, i := range at {
		names = append(names, sites[i])
	}
	return problem.Names(names)
}

func haveIt(sites []string, at []int, but int) string {
	rest := slices.DeleteFunc(slices.Clone(at), func(i int) bool { return i == but })
	if len(rest) == 1 {
		return namesAt(sites, rest) + " has"
	}
	return namesAt(sites, rest) + " have"
}

// exchanged returns a level that a site alone has and one that it lacks although all others have it: both would be
// few subjects or more on the other side, were shares alike.
func exchanged(levels [][]Level, total []int64, having map[string]int, site int, at []int) (alone, lacks string) {
	var others int64
	counts := map[string]int64{}
	for _, i := range at {
		if i != site {
			others += total[i]
			for _, l := range levels[i] {
				counts[l.Name] += l.Subjects
			}
		}
	}
	var most int64
	for _, l := range levels[site] {
		if having[l.Name] == 1 && float64(l.Subjects)/float64(total[site])*float64(others) >= few && l.Subjects > most {
			alone, most = l.Name, l.Subjects
		}
	}
	if alone == "" {
		return "", ""
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		own := slices.ContainsFunc(levels[site], func(l Level) bool { return l.Name == name })
		if !own && having[name] == len(at)-1 && float64(counts[name])/float64(others)*float64(total[site]) >= few {
			return alone, name
		}
	}
	return "", ""
}

// standardised returns the sites that seem to have scaled a view by themselves, if others have not.
func (o Others) standardised(view int) (own []string) {
	with := 0
	for i, s := range o.Summaries {
		var n, mean, squares []float64
		for _, f := range s.Views[view].Features {
			if m := f.Moments; m != nil {
				count := float64(f.Observed)
				n, mean, squares = append(n, count), append(mean, m.Mean), append(squares, m.SD*m.SD*(count-1))
			}
		}
		if n != nil {
			with++
		}
		if Standardised(n, mean, squares) {
			own = append(own, o.Sites[i])
		}
	}
	if len(own) == with {
		return nil
	}
	return own
}

// Standardised says whether features, by their numbers of values, means and sums of squared
// deviations, have means of 0 and standard deviations of 1, by n or by n − 1, closer than samples
// have by chance: whoever has the rows has scaled each feature by itself. Fewer than three
// features that vary tell nothing.
func Standardised(n, mean, squares []float64) bool {
	features := 0
	for j, count := range n {
		if !(squares[j] > 0) || count < 3 {
			continue
		}
		sd := math.Sqrt(squares[j] / count)
		off := min(math.Abs(sd-1), math.Abs(sd*math.Sqrt(count/(count-1))-1))
		if !(math.Abs(mean[j])*math.Sqrt(count) < standardisedTo && off*math.Sqrt(2*count) < standardisedTo) {
			return false
		}
		features++
	}
	return features >= fewestStandardised
}

// rare is of how many subjects one may have the values of another where rows are not long, as rounded values agree by
// chance.
const rare = 500

// common counts the rows that two sets have in common, and says whether one of them is long.
func common(a, b map[uint64]bool) (n int, long bool) {
	for h, own := range a {
		if _, has := b[h]; has {
			n, long = n+1, long || own
		}
	}
	return n, long
}

// repeats counts the subjects of a site who have the values of a subject of another in every
// feature, if they are more than chance makes alike; 0 otherwise. How often chance does follows
// from the subjects of one site who are alike: of sites whose subjects are drawn with
// probabilities p and q for each set of values, a pair of two sites is alike with probability
// Σpq ≤ (Σp² + Σq²)/2, and Σp² is that of a pair of one site. Both counts of pairs are given four
// standard errors, which count that pairs share subjects.
func repeats(a, b map[uint64]int) (subjects int) {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	const z = 4
	within := func(of map[uint64]int) (n, pairs, variance float64) {
		for _, k := range of {
			k := float64(k)
			n, pairs, variance = n+k, pairs+k*(k-1)/2, variance+k*(k-1)/2+k*(k-1)*(k-2)
		}
		return n, pairs, variance
	}
	n, inA, varA := within(a)
	m, inB, varB := within(b)
	if n < 2 || m < 2 {
		return 0
	}
	var pairs, variance float64
	for h, k := range a {
		k, l := float64(k), float64(b[h])
		pairs, variance, subjects = pairs+k*l, variance+k*l*(k+l-1), subjects+int(min(k, l))
	}
	wa, wb := m/(n-1), n/(m-1) // Σp² of a pair across is wa times what it is for all pairs within a
	expected := wa*inA + wb*inB
	most := max(wa, wb)
	expected += z*math.Sqrt(wa*wa*varA+wb*wb*varB+z*z*most*most/4) + z*z*most/2
	if pairs-expected <= z*math.Sqrt(variance) {
		return 0
	}
	return subjects
}

// units parts the sites where the medians of the absolute values are farthest apart. It
// returns those of one side, the fewer, with how many times as large values are there, if
//
//   - the median of the medians above is unitRatio times that below or more, and every site's
//     middle half above lies above every one's below; or
//   - the middle nine tenths above and below are farther apart than those of any site
//     reach, as with mmHg and kPa, °F and °C, inches and centimetres; or
//   - these do not touch, and reach farther above by as much as the medians are larger, as with pounds and kilograms:
//     other people, such as children, differ less than in proportion, and other instruments by less than two fifths.
//
// Where values have both signs, their size is no matter of the unit alone, and it returns none.
func units(sites []string, features []*FeatureSummary) (odd, rest []string, ratio float64) {
	type level struct {
		site                   string
		low, median, high      float64
		least, greatest, reach float64 // of the middle nine tenths
	}
	var levels []level
	var low, high float64 // around zero
	for i, f := range features {
		if f.Moments != nil {
			low, high = min(low, f.Moments.Min), max(high, f.Moments.Max)
		}
		if f.sizes == nil || f.sizes.n < unitObserved {
			continue
		}
		if m := f.sizes.quantile(0.5); m > 0 {
			least, greatest := f.sizes.quantile(0.05), f.sizes.quantile(0.95)
			levels = append(levels, level{sites[i], f.sizes.quantile(0.25), m, f.sizes.quantile(0.75), least, greatest,
				greatest - least})
		}
	}
	if len(levels) < 2 || low < 0 && high > 0 {
		return nil, nil, 0
	}
	slices.SortStableFunc(levels, func(a, b level) int { return cmp.Compare(a.median, b.median) })
	cut, gap := 0, 0.0
	for i := 1; i < len(levels); i++ {
		if g := levels[i].median / levels[i-1].median; g > gap {
			cut, gap = i, g
		}
	}
	below, above := levels[:cut], levels[cut:]
	ratio = above[len(above)/2].median / below[len(below)/2].median
	most := func(of []level, what func(level) float64) float64 {
		return what(slices.MaxFunc(of, func(a, b level) int { return cmp.Compare(what(a), what(b)) }))
	}
	top, bottom := func(l level) float64 { return l.high }, func(l level) float64 { return -l.low }
	halves := most(below, top) < -most(above, bottom)
	gap = -most(above, func(l level) float64 { return -l.least }) - most(below, func(l level) float64 {
		return l.greatest
	})
	reach := func(l level) float64 { return l.reach }
	scaled := ratio >= 1.4 && above[len(above)/2].reach >= 0.75*ratio*below[len(below)/2].reach
	if !(ratio >= unitRatio && halves) && !(gap > most(levels, reach)) && !(gap > 0 && scaled) {
		return nil, nil, 0
	}
	if len(above) > len(below) {
		below, above, ratio = above, below, 1/ratio
	}
	names := func(of []level) (names []string) {
		for _, l := range of {
			names = append(names, l.site)
		}
		slices.Sort(names)
		return names
	}
	return names(above), names(below), ratio
}

// times writes a positive ratio without an exponent, with one significant digit, or near 1 with
// two: classes of sizes know no more.
func times(v float64) string {
	digits := 1
	if v > 0.1 && v < 10 {
		digits = 2
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', digits, 64), 64)
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}
