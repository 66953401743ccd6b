package options

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/floats"

	"parley/dataset"
	"parley/internal/stats"
	"parley/methods/regression/glm"
	"parley/problem"
)

const (
	// fewest values of a site, or of all others, say how large a number is.
	fewest = 20
	// widerBy is by how much more the logarithm of a standard deviation differs than between populations, and fartherBy
	// how many standard deviations of values, and of what sites differ by, a mean lies from that of others.
	widerBy, fartherBy = 4, 5
	// missed is the probability with which chance leaves a site without a level, at most.
	missed = 1e-6
)

// conversion is how numbers become others in another unit, and what that is.
type conversion struct {
	times, plus float64
	what        string
}

// conversions are those in which the same is measured at different places.
var conversions = []conversion{
	{1.8, 32, "°F in place of °C"}, {1 / 1.8, -32 / 1.8, "°C in place of °F"}, {0.133322, 0, "kPa in place of mmHg"},
	{1 / 0.133322, 0, "mmHg in place of kPa"}, {88.42, 0, "µmol/l in place of mg/dl, as of creatinine"},
	{1 / 88.42, 0, "mg/dl in place of µmol/l, as of creatinine"},
	{38.67, 0, "mg/dl in place of mmol/l, as of cholesterol"},
	{1 / 38.67, 0, "mmol/l in place of mg/dl, as of cholesterol"},
	{18.02, 0, "mg/dl in place of mmol/l, as of glucose"},
	{1 / 18.02, 0, "mmol/l in place of mg/dl, as of glucose"}, {2.2046, 0, "pounds in place of kilograms"},
	{1 / 2.2046, 0, "kilograms in place of pounds"},
	{1 / 2.54, 0, "inches in place of centimetres"}, {2.54, 0, "centimetres in place of inches"},
	{10, 0, "a unit a tenth as large"},
	{0.1, 0, "a unit ten times as large"}, {100, 0, "a unit a hundredth as large"},
	{0.01, 0, "a unit a hundred times as large"},
	{1000, 0, "a unit a thousandth as large"}, {0.001, 0, "a unit a thousand times as large"},
	{365.25, 0, "days in place of years"},
	{1 / 365.25, 0, "years in place of days"}, {-1, 2020, "years of birth in place of ages"},
	{-1, 2000, "years of birth in place of ages"},
}

// Unlike says how sites seem to have recorded something in other ways than the others, by the moments and counts that
// the sites gave, which were checked: numbers in another unit, or standardised, and levels with other names. With one
// site there is nothing to say.
func (s *Setup) Unlike(sites []string, moments map[string]*ScaleAnswer) (says []glm.Finding) {
	var names []string
	var all []*ScaleAnswer
	var standardised []string
	for _, site := range sites {
		if a, k := moments[site], len(s.Numbers()); a != nil && len(a.N) >= k { // an outcome may follow
			names, all = append(names, site), append(all, a)
			if dataset.Standardised(a.N[:k], a.Mean[:k], a.Squares[:k]) {
				standardised = append(standardised, site)
			}
		}
	}
	if n := len(standardised); n > 0 && n < len(all) {
		return glm.OnRecording.Say(strings.Join(standardised, ", "), "numbers seem to have been standardised:",
			"each has a mean of 0 and a standard deviation of 1, more exactly than chance explains, which is not so "+
				"at other sites. Give the plan the values as they were measured.")
	}
	numbers, _ := s.Counted()
	if s.Options.Survey() {
		numbers = numbers[:len(numbers)-1]
	}
	for i, name := range numbers {
		says = append(says, otherUnit(name, names, all, i)...)
	}
	for i, at := range s.levels()[:len(s.Encoding.Columns)] {
		c := &s.Encoding.Columns[i]
		says = append(says, otherLevels(c.Name, c.Levels, names, all, at)...)
	}
	return says
}

// otherUnit says at which sites a number is far from what it is at most others: its mean by five standard deviations,
// of values and of what the means of sites differ by, or its standard deviation by a factor of four and what chance
// explains. Of fewer than five sites only the one that is farthest off is named.
func otherUnit(name string, sites []string, all []*ScaleAnswer, i int) (says []glm.Finding) {
	type off struct {
		by   float64
		says []glm.Finding
	}
	var found []off
	for k, a := range all {
		if a.N[i] < fewest {
			continue
		}
		own, sd := a.Mean[i], math.Sqrt(a.Squares[i]/a.N[i])
		var means, logs []float64
		for o, b := range all {
			if o != k && b.N[i] >= fewest && b.Squares[i] > 0 {
				means, logs = append(means, b.Mean[i]), append(logs, math.Log(b.Squares[i]/b.N[i])/2)
			}
		}
		if len(means) == 0 {
			continue
		}
		m, s := medianOf(means), math.Exp(medianOf(logs))
		var far []float64
		for _, x := range means {
			far = append(far, math.Abs(x-m))
		}
		spread := math.Sqrt(s*s + 4*1.48*1.48*medianOf(far)*medianOf(far))
		chance := 2 * math.Sqrt(3/a.N[i])
		by := math.Abs(own-m) / spread / fartherBy
		if p := m - math.Floor(m); sd > 0 {
			by = max(by, math.Abs(math.Log(sd/s))/(math.Log(widerBy)+chance))
		} else if math.Abs(p*(1-p)-s*s) < 0.01*s*s { // two values, of which the site has one
			if share := math.Abs(own - m); a.N[i]*math.Log1p(-share) < math.Log(missed) {
				by = max(by, 1+share)
			}
		}
		if by <= 1 {
			continue
		}
		least, what := 1.0, "It may be another unit or coding, or a few values far from all others, which plan check "+
			"--data names to the site."
		for _, u := range conversions { // in which the site would be as the others
			back, width := (own-u.plus)/u.times, sd/math.Abs(u.times)
			if d := math.Abs(back-m)/(2*spread) + math.Abs(math.Log(width/s))/(math.Log(2)+chance); d < least {
				least, what = d, "So it would be with "+u.what+"."
			}
		}
		found = append(found, off{by, glm.OnRecording.Say(sites[k], name+" is unlike that of other sites:",
			fmt.Sprintf("it has a mean of %.4g and a standard deviation of %.4g, where they have about %.4g and %.4g. "+
				"%s", own, sd, m, s, what))})
	}
	if len(all) < 5 && len(found) > 1 {
		found = []off{slices.MaxFunc(found, func(a, b off) int { return cmp.Compare(a.by, b.by) })}
	}
	for _, o := range found {
		says = append(says, o.says...)
	}
	return says
}

// otherLevels says which levels of a category a single site has or lacks.
func otherLevels(name string, levels, sites []string, all []*ScaleAnswer, at int) (says []glm.Finding) {
	total, everybody := make([]float64, len(levels)), 0.0
	for _, a := range all {
		for l, n := range a.Levels[at:][:len(levels)] {
			total[l], everybody = total[l]+n, everybody+n
		}
	}
	for k, a := range all {
		counts := a.Levels[at:][:len(levels)]
		own := floats.Sum(counts)
		others := everybody - own
		if own < fewest || others < fewest {
			continue
		}
		var alone, lacks []string
		for l, level := range levels {
			here, there := counts[l], total[l]-counts[l]
			if there == 0 && others*math.Log1p(-here/own) < math.Log(missed) {
				alone = append(alone, level)
			}
			if here == 0 && own*math.Log1p(-there/others) < math.Log(missed) {
				lacks = append(lacks, level)
			}
		}
		var what []string
		if alone != nil {
			what = append(what, "has levels that no other site has: "+problem.Names(alone))
		}
		if lacks != nil {
			what = append(what, "lacks "+problem.Names(lacks))
		}
		if what != nil {
			says = append(says, glm.OnRecording.Say(sites[k], name+" "+strings.Join(what, "; ")+".", "See whether "+
				"the same has other names there; else these effects cannot be told from what else the site differs "+
				"by.")...)
		}
	}
	return says
}

func medianOf(v []float64) float64 { return stats.Median(slices.Clone(v)) }
