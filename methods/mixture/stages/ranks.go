package stages

import (
	"fmt"
	"math"
	"strings"

	"parley/figure"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/kernelmean"
	"parley/methods/mixture/options"
)

// calibrationLevel is how often the verdict on a posterior that is right is that it is
// not.
const calibrationLevel = 0.01

// calibrationSection shows simulation-based calibration of the study's own posterior:
// whether intervals such as those of this report hold true values as often as they say.
// It rests on simulated rows alone and says nothing about any person.
func calibrationSection(all []gmm.Calibrated, replicates int) figure.Section {
	return figure.Section{ID: "calibration", Title: "Are the intervals honest?",
		Lead:  fmt.Sprintf("This very study was repeated %d times with made-up rows: a mixture was drawn from the prior, as many rows as here from it (at most %d), noised sums from them, and a posterior from those. The mixture that was drawn is known, and its place among the posterior's draws should be anywhere with the same probability.", replicates, kernelmean.MaxReplicateRows),
		Items: []figure.Item{{Note: calibrationVerdict(all)}, {Figure: calibrationRanks(all, replicates)}, {Figure: coverageFigure(all, replicates)}, {Table: calibrationTable(all)}}}
}

// calibrationVerdict says in words what [gmm.Pass] does, and which quantities fail.
func calibrationVerdict(all []gmm.Calibrated) *figure.Note {
	if len(all) == 0 {
		return &figure.Note{Warning: true, Title: "Intervals were not tested", Text: "No quantity was ranked."}
	}
	least := all[0]
	var failed []string
	for _, c := range all {
		if c.P < least.P {
			least = c
		}
		if !(c.P >= calibrationLevel/float64(len(all))) {
			failed = append(failed, fmt.Sprintf("%s (p %s)", c.Name, chanceText(c.P)))
		}
	}
	if gmm.Pass(all, calibrationLevel) {
		return &figure.Note{Title: "Calibrated, as far as can be told",
			Text: fmt.Sprintf("Of %d quantities none departs from what chance makes: the smallest p %s, of the %s, where %s would be too small. A posterior that is right fails this test once in a hundred times. It was tested for mixtures from the prior: rows that no such mixture makes are another matter.",
				len(all), chanceText(least.P), least.Name, figure.General.Text(calibrationLevel/float64(len(all))))}
	}
	return &figure.Note{Warning: true, Title: "Intervals are not calibrated",
		Text: fmt.Sprintf("True values are not where the posterior says: %s. Chance alone does this less than once in a hundred times. Ranks that crowd at both ends mean intervals that are too narrow, ranks that crowd in the middle intervals that are too wide, ranks at one end values that are too small or too large. Do not rely on intervals of these quantities.", strings.Join(failed, "; "))}
}

// chanceText writes a probability behind its name.
func chanceText(p float64) string {
	if p < 0.0001 {
		return "< 0.0001"
	}
	return fmt.Sprintf("= %.2g", p)
}

// calibrationRanks draws the ranks of every quantity over so many replicates, with what
// chance makes of them.
func calibrationRanks(all []gmm.Calibrated, replicates int) *figure.Figure {
	bins := 0
	for _, c := range all {
		bins = max(bins, len(c.Counts))
	}
	h := figure.Histograms{X: figure.Axis{Label: "rank of the true value among the draws, as a share"}, Columns: []string{fmt.Sprintf("%d replicates", replicates)},
		Band: "where 99 of 100 bars lie by chance"}
	for b := range bins + 1 {
		h.Edges = append(h.Edges, float64(b)/float64(max(bins, 1)))
	}
	low, high := gmm.ChanceBand(replicates, 1/float64(max(bins, 1)), 0.99)
	low, high = low*float64(replicates), high*float64(replicates)
	for _, c := range all {
		cell := figure.Histogram{Note: "p " + chanceText(c.P)}
		for _, n := range c.Counts {
			cell.Filled, cell.Low, cell.High = append(cell.Filled, float64(n)), append(cell.Low, low), append(cell.High, high)
		}
		h.Rows, h.Cells = append(h.Rows, c.Name), append(h.Cells, cell)
	}
	return &figure.Figure{ID: "calibration-ranks", Title: "Where true values lie among the draws", Chart: h,
		Caption: "Level within the band: calibrated. A valley says that intervals are too narrow, a hill that they are too wide, a slope that values are off to one side.",
		Alt:     "Histograms of the ranks of true values for every quantity, with the band that chance explains."}
}

// coverageFigure draws how often intervals held the true value.
func coverageFigure(all []gmm.Calibrated, replicates int) *figure.Figure {
	bars := figure.Bars{X: figure.Axis{Label: "share of true values within the interval that should hold 90 %"}, Mark: "as it should be"}
	for _, c := range all {
		low, high := wilson(c.Within, replicates)
		bars.Labels, bars.Values = append(bars.Labels, c.Name), append(bars.Values, c.Within)
		bars.Low, bars.High, bars.Marks = append(bars.Low, low), append(bars.High, high), append(bars.Marks, 0.9)
	}
	return &figure.Figure{ID: "calibration-coverage", Title: "How often intervals hold the true value", Chart: bars,
		Caption: fmt.Sprintf("Marks are shares of %d replicates, whiskers what so few leave open (95 %%, Wilson's interval, each for itself: of %d one may miss by chance); the stroke is at the 90 %% that intervals promise.", replicates, len(all)),
		Alt:     "Forest plot of the coverage of 90 % intervals for every quantity."}
}

// wilson returns the 95 % score interval of a share of n (Wilson 1927).
func wilson(share float64, n int) (low, high float64) {
	const z = 1.959963984540054
	m := float64(max(n, 1))
	mid := (share + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(share*(1-share)/m+z*z/(4*m*m))
	return max(mid-half, 0), min(mid+half, 1)
}

func calibrationTable(all []gmm.Calibrated) *figure.Table {
	name, chi, p, within := figure.Column{Name: "quantity"}, figure.Column{Name: "χ²", Numbers: figure.Numbers{}}, figure.Column{Name: "p", Format: figure.Score, Numbers: figure.Numbers{}}, figure.Column{Name: "held by 90 % intervals", Format: figure.Percent, Numbers: figure.Numbers{}}
	for _, c := range all {
		name.Text = append(name.Text, c.Name)
		chi.Numbers, p.Numbers, within.Numbers = append(chi.Numbers, c.ChiSq), append(p.Numbers, c.P), append(within.Numbers, c.Within)
	}
	return &figure.Table{ID: "calibration", Title: "Tests", Caption: fmt.Sprintf("p is the probability of ranks at least as uneven as these (χ²) if the posterior is right. With %d quantities, one below %s is too small.", len(all), figure.General.Text(calibrationLevel/float64(max(len(all), 1)))),
		Columns: []figure.Column{name, chi, p, within}}
}

// named is the name of a quantity that was ranked, with the feature's instead of its
// number.
func named(s *options.Setup, quantity string) string {
	for i, name := range s.Names {
		for _, of := range []string{"mean", "ln variance"} {
			if head, ok := strings.CutSuffix(quantity, fmt.Sprintf(": %s %d", of, i+1)); ok {
				return fmt.Sprintf("%s: %s of %s", head, of, name)
			}
		}
	}
	return quantity
}
