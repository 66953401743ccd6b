package dataset

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parley/problem"
)

// facts is what rows show of one column, whatever it is: a feature, an outcome or another column of the subjects.
// Doubts look at facts alone, so that each holds of every kind of column.
type facts struct {
	table   string // "view clinic" or "subjects"
	name    string
	feature bool
	number  *FeatureSummary // nil unless all values are numbers
	// that subjects have, without those that stand for nothing; nil if there are too many to count
	levels []Level
	seen   int64 // subjects with a value
}

func (f *facts) where() string {
	if f.feature {
		return f.table + ", feature " + f.name
	}
	return f.table + ", column " + f.name
}

// instead is what to do about cells that stand for nothing.
func (f *facts) instead(code string) string {
	if f.feature {
		return fmt.Sprintf("list it in the plan: {name: %s, missing: [%s]}", f.name, code)
	}
	return "leave such cells empty, and list the column in the plan under complete_cases"
}

// facts of all columns: those of the subjects, then the features of each view. Another summary of the same schema has
// the same.
func (s *Summary) facts() (all []*facts) {
	for _, c := range s.Columns {
		f := &facts{table: "subjects", name: c.Name, number: c.number}
		for _, l := range c.Levels {
			if !IsMissing(l.Name) {
				f.levels, f.seen = append(f.levels, l), f.seen+l.Subjects
			}
		}
		if f.number != nil {
			f.seen = f.number.Observed
		}
		all = append(all, f)
	}
	for _, v := range s.Views {
		for i := range v.Features {
			own := &v.Features[i]
			f := &facts{table: "view " + v.Name, name: own.Name, feature: true, seen: own.Observed}
			switch {
			case own.Moments != nil:
				f.number = own
				if own.often.used < len(own.often.list) {
					for _, e := range own.often.top() {
						f.levels = append(f.levels, Level{strconv.FormatFloat(e.value, 'g', -1, 64), e.n})
					}
				}
			case own.Levels != nil:
				t, numbers := newTally(nil), true
				for _, l := range own.Levels {
					if l.Subjects == 0 {
						continue
					}
					f.levels = append(f.levels, l)
					v, ok := parseNumber([]byte(l.Name))
					if numbers = numbers && ok && !math.IsNaN(v); numbers {
						t.add(v, l.Subjects)
					}
				}
				if numbers && t.n > 0 {
					f.number = &FeatureSummary{Name: own.Name}
					t.into(f.number)
				}
			}
			all = append(all, f)
		}
	}
	return all
}

// doubt is one reason to look again at a column of one site.
type doubt struct {
	name string
	// see returns what it says of a column, in full.
	see func(*facts) problem.List
	// or item an entry for a list of the columns of a table that it holds of, "" for none, which say introduces.
	item func(*Summary, *facts) string
	say  func(*Summary) (what, hint string)
}

// doubts are all of them. Each runs on every kind of column.
var doubts = []doubt{
	{name: "codes", see: func(f *facts) problem.List {
		if f.number == nil {
			return nil
		}
		return f.number.codes(f.where(), f.instead)
	}},
	{name: "bare zeros", see: func(f *facts) problem.List {
		zeros := int64(0)
		if f.number != nil {
			zeros = f.number.bareZeros()
		}
		return f.one(zeros > 0, func() (string, string) {
			return fmt.Sprintf("0, at %d of %d subjects, is apart from all other values, which are positive", zeros,
				f.seen), "if it stands for a missing value, " + f.instead("0")
		})
	}},
	{name: "outliers", see: func(f *facts) problem.List {
		n, how := int64(0), 0.0
		if f.number != nil && len(f.number.suspects()) == 0 {
			n, how = f.number.outliers()
		}
		return f.one(n > 0, func() (string, string) {
			return fmt.Sprintf("%d of %d values are far from the rest: %.2g times as far as the rest reaches", n,
					f.seen, how),
				"is it another unit, a missing decimal point or a code? 'parley data describe DATA --features' shows " +
					"the range"
		})
	}},
	{name: "slips", see: func(f *facts) problem.List {
		n, ratio := int64(0), 0.0
		if f.number != nil {
			n, ratio = f.number.slips()
		}
		return f.one(n > 0, func() (string, string) {
			return fmt.Sprintf("%d of %d values are apart from the others: one group is about %s times as large", n,
				f.seen, times(ratio)), "are decimal points missing, or were two units in use? write all in one"
		})
	}},
	{name: "thousands", see: func(f *facts) problem.List {
		return f.one(f.number != nil && f.number.forms.thousands(), func() (string, string) {
			return "whole numbers below 1000 stand beside numbers with exactly three decimals, as where 1.012 is " +
				"written for 1012", "is the point a separator of thousands? write 1012"
		})
	}},
	{name: "dates", see: func(f *facts) problem.List {
		return f.one(f.number != nil && f.number.Days(f.name), func() (string, string) {
			return "the numbers look like dates, as 20240131, 31012024 or the days and seconds that programs count",
				"a date is no amount: give the days or years since another date, which 'mapping.yaml' can do"
		})
	}},
	{name: "row numbers", see: func(f *facts) problem.List {
		return f.one(f.number != nil && f.number.Counting(f.name), func() (string, string) {
			return "the column numbers the rows, as programs add when they write a table",
				"leave it out of the plan: it says nothing of the subjects"
		})
	}},
	{name: "beyond", item: func(_ *Summary, f *facts) string {
		if f.number == nil || f.number.Beyond <= f.number.Observed/100 {
			return ""
		}
		return fmt.Sprintf("%s (%d of %d)", f.name, f.number.Beyond, f.number.Observed)
	}, say: func(s *Summary) (string, string) {
		what := "values lie beyond the plan's range"
		if s.beyondRange != "" {
			what += ", " + s.beyondRange
		}
		return what, "is it another unit? Otherwise give a range that is publicly known to hold nearly all values"
	}},
	{name: "cramped", item: func(_ *Summary, f *facts) string {
		if f.number == nil || !f.number.cramped() {
			return ""
		}
		return f.name
	}, say: func(*Summary) (string, string) {
		return "values take up less than a tenth of the plan's range",
			"is it another unit? Privacy noise and priors are in proportion to the range where it scales the values, " +
				"and hide what varies little in it: give a range that is publicly known to hold nearly all values, " +
				"and no wider one"
	}},
	{name: "repeated", item: func(_ *Summary, f *facts) string {
		if f.number == nil || len(f.number.suspects()) > 0 || f.number.repeated() == 0 {
			return ""
		}
		return fmt.Sprintf("%s (at least %d of %d)", f.name, f.number.repeated(), f.number.Observed)
	}, say: func(*Summary) (string, string) {
		return "many values are one and the same, which others lie below and above",
			"were missing values filled in, by a mean for example? Leave such cells empty: values that were filled " +
				"in hide how features go together, and intervals become too narrow"
	}},
	{name: "spellings", see: func(f *facts) problem.List { return f.spellings() }},
}

// one is a list of one problem if it holds.
func (f *facts) one(holds bool, say func() (what, hint string)) problem.List {
	if !holds {
		return nil
	}
	what, hint := say()
	return problem.List{{Where: f.where(), What: what, Hint: hint}}
}

// spellings are levels that a site writes in two ways.
func (f *facts) spellings() (list problem.List) {
	if f.number != nil {
		return nil
	}
	for i, a := range f.levels {
		for _, b := range f.levels[:i] {
			if problem.Key(a.Name) == problem.Key(b.Name) {
				one, other := problem.Spelt(b.Name, a.Name)
				list.Add(problem.Problem{Where: f.where(),
					What: fmt.Sprintf("%s and %s seem to be the same, and are taken for two values", one, other),
					Hint: "write them the same way, or let 'mapping.yaml' do so"})
				break
			}
		}
	}
	return list
}

// Doubts returns what makes a person look again before the data are used: subjects who are copies of others or look
// like visits of one person, and of each column what the table of doubts knows. Codes and spellings are quoted, and no
// other value. Clean data hardly ever have any.
func (s *Summary) Doubts() (list problem.List) {
	if s.copied || rare*s.Copies > s.Subjects {
		list.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("%d of %d have the values of another in every feature", s.Copies, s.Subjects),
			Hint: "were rows copied under other ids? A person who counts twice makes intervals too narrow"})
	}
	if s.spelt != nil {
		list.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("ids that differ from another only in spelling: %d of %d, such as %+q", s.spelt.again,
				s.Subjects, s.spelt.alike), Hint: "does one person count twice? write each id in one way"})
	}
	if v := s.visits; v != nil {
		hint := "are rows visits of one person, or members of a family? Each counts as a subject of its own, which " +
			"makes standard errors and intervals too narrow: keep one row of each person"
		if s.Worth != nil {
			hint = s.Worth(v.most)
		}
		list.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("%d of %d have ids that are alike but for their endings, such as %s", v.rows, s.Subjects,
				v.example), Hint: hint})
	}
	for all := s.facts(); len(all) > 0; {
		n := 1
		for n < len(all) && all[n].table == all[0].table {
			n++
		}
		for _, f := range all[:n] {
			for _, d := range doubts {
				if d.see != nil {
					list = append(list, d.see(f)...)
				}
			}
		}
		for _, d := range doubts {
			var items []string
			for _, f := range all[:n] {
				if d.item != nil {
					items = append(items, d.item(s, f))
				}
			}
			if items = slices.DeleteFunc(items, func(s string) bool { return s == "" }); len(items) > 0 {
				what, hint := d.say(s)
				list.Add(problem.Problem{Where: all[0].table, What: what + ": " + problem.Names(items), Hint: hint})
			}
		}
		all = all[n:]
	}
	return list
}

// forms counts how numbers are written, as far as values tell.
type forms struct {
	wholes, tenths, thousandths, others int64 // those of 0, 1 or 2, exactly 3, and more decimals
	// the least and the largest size of a whole one, and of another below 1000
	whole, part [2]float64
	days        int64 // wholes that are dates in digits, or seconds since 1970
	serials     int64 // wholes that a spreadsheet, Stata or R has for days of a life
}

func (f *forms) add(v float64, n int64) {
	size := math.Abs(v)
	near := func(x float64) bool { return math.Abs(x-math.Round(x)) < 1e-6 }
	switch {
	case v == math.Trunc(v):
		if f.wholes == 0 {
			f.whole = [2]float64{size, size}
		}
		f.wholes, f.whole = f.wholes+n, [2]float64{min(f.whole[0], size), max(f.whole[1], size)}
		if inDigits(v) || v > 9e8 && v < 2.2e9 || v > 9e11 && v < 2.2e12 {
			f.days += n
		} else if v > 1000 && v < 60000 {
			f.serials += n
		}
	case size >= 1000 || !near(1000*v):
		f.others += n
	default:
		if f.thousandths+f.tenths == 0 {
			f.part = [2]float64{size, size}
		}
		if f.part = [2]float64{min(f.part[0], size), max(f.part[1], size)}; near(100 * v) {
			f.tenths += n
		} else {
			f.thousandths += n
		}
	}
}

// thousands says whether points seem to part thousands: fractions have three decimals, but for zeros at the end, and
// begin at 1; and there are whole numbers, below 1000. Measurements with three decimals are hardly ever whole; where no
// whole number is as small as a fraction, fewer of them suffice.
func (f *forms) thousands() bool {
	fractions := f.tenths + f.thousandths
	most := 4*fractions <= 5*f.thousandths || f.part[1] < f.whole[0] && fractions <= 2*f.thousandths
	return f.others == 0 && f.thousandths >= 3 && most && f.part[0] >= 1 && f.wholes >= 3 && 20*f.wholes >= fractions &&
		f.whole[1] < 1000 && f.whole[1] >= 100
}

// inDigits says whether a number is a day, written as YYYYMMDD, DDMMYYYY or MMDDYYYY, or a month, as YYYYMM.
func inDigits(v float64) bool {
	if v < 0 || v >= 1e8 {
		return false
	}
	n := int(v)
	year := func(y int) bool { return y >= 1800 && y <= 2100 }
	day := func(d, month int) bool { return d >= 1 && d <= 31 && month >= 1 && month <= 12 }
	high, low := n/1e6, n/1e4%100
	return year(n/1e4) && day(n%100, n/100%100) || year(n%1e4) && (day(high, low) || day(low, high)) ||
		year(n/100) && day(1, n%100)
}

// dated are names of columns of days.
var dated = regexp.MustCompile(
	`(?i)(^|[_. -])(dates?|datum|fecha|dt|dat|dob)([_. -]|$)|(date|datum)$|date(?-i:[A-Z])`)

// Days says whether nine in ten of ten numbers or more are days in digits or seconds since 1970; or whole numbers that
// may count the days of a calendar in a column whose name says that it holds dates.
func (f *FeatureSummary) Days(name string) bool {
	if f.forms == nil || f.Observed < 10 {
		return false
	}
	days := f.forms.days
	if dated.MatchString(name) {
		days += f.forms.serials
	}
	return 10*days >= 9*f.Observed
}

// added are names of columns that programs add to a table for its row numbers: pandas, R's write.csv and readr, dplyr.
var added = regexp.MustCompile(`(?i)^(__index_level_\d+__|unnamed: ` +
	`?\d+(\.\d+)*|unnamed_?\d+|\.\.\.\d+|level_\d+|(?-i:X)(\.\d+)?|index|row_?names?|row_?(id|nr|num|number|index)?|obs|_n_)$`)

// Counting says whether a column numbers rows: all numbers from 0 or 1 on, each once, of ten or more; of a column
// named as programs name such ones, whole numbers of which none is there twice.
func (f *FeatureSummary) Counting(name string) bool {
	m := f.Moments
	if m == nil || f.Observed < 10 || f.forms.wholes != f.Observed {
		return false
	}
	n := float64(f.Observed)
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }
	if (m.Min == 0 || m.Min == 1) && m.Max == m.Min+n-1 && near(m.Mean, (m.Min+m.Max)/2) &&
		near(m.SD*m.SD, n*(n+1)/12) {
		return true
	}
	return added.MatchString(strings.TrimSpace(name)) && m.Min >= 0 &&
		!slices.ContainsFunc(f.often.top(), func(e extreme) bool { return e.n > 1 })
}

// slips counts values that form a group of their own which lies 10, 100 or 1000 times as high or low as the others'
// group, within a quarter. Both groups reach less than a factor of three, so that none is a tail of the other; or they
// are farther apart than either reaches, and the smaller one has a tenth of the values. Or both reach half as far again
// at most, and as far as each other, with more between them: heights in centimetres and in inches. A group has four
// values or more; a drug that is given in a few doses has few values.
func (f *FeatureSummary) slips() (n int64, ratio float64) {
	s := f.sizes
	if s == nil || s.zeros > 0 || s.n < 12 || f.Moments.Min < 0 || !f.often.many(s.n) {
		return 0, 0
	}
	const half, third = 5, 13 // classes, eighths of powers of two, within a factor of one and a half, and of three
	for cut, gap := 0, 0; cut < len(s.count); cut++ {
		if s.count[cut] != 0 {
			gap = 0
			continue
		}
		if gap++; cut+1 == len(s.count) || s.count[cut+1] == 0 {
			continue
		}
		low, high := sizes{first: s.first, count: s.count[:cut-gap+1]},
			sizes{first: s.first + cut + 1, count: s.count[cut+1:]}
		few, wide, narrow := s.n, 0, third
		for _, of := range []*sizes{&low, &high} {
			for _, c := range of.count {
				of.n += c
			}
			few, wide, narrow = min(few, of.n), max(wide, len(of.count)), min(narrow, len(of.count))
		}
		ratio := high.quantile(0.5) / low.quantile(0.5)
		tens := math.Pow(10, math.Round(math.Log10(ratio)))
		switch {
		case few < 4:
		case gap > half+1 && wide <= half && wide <= narrow+1,
			gap >= third && (wide <= third || wide <= gap && 10*few >= s.n) && tens > 1 && tens <= 1000 &&
				math.Abs(ratio/tens-1) < 0.25:
			return few, ratio
		}
	}
	return 0, 0
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
			if n, _ := f.slips(); n == 0 && f.skewed() {
				skewed = append(skewed, f.Name)
			}
		}
		if len(ends) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "many values are all at one end: " +
				problem.Names(ends),
				Hint: "is it a limit of detection, or the end of a scale? What lies beyond is not known, and neither " +
					"a line nor a normal distribution describes such a feature"})
		}
		if len(skewed) > 0 {
			list.Add(problem.Problem{Where: "view " + v.Name, What: "skewed, so that a few large values decide: " +
				problem.Names(skewed),
				Hint: "give their logarithms instead, at all sites; of values that can be 0, the logarithm of one " +
					"more"})
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
		list.Add(problem.Problem{Where: "subjects",
			What: fmt.Sprintf("%s: without privacy, what leaves this site tells of single people", few),
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
		list.Add(problem.Problem{Where: fmt.Sprintf("sets of views with fewer than %d subjects", SmallCell),
			What: fmt.Sprintf("%d; subjects who have them: %d", sets, few),
			Hint: fmt.Sprintf("without privacy how many they are is released: minimum: {pattern_subjects: %d} in the "+
				"site's policy prevents that", SmallCell)})
	}
	return list
}
