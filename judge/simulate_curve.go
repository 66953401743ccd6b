package judge

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/privacy/account"
	"parley/problem"
)

// Curve is what came of it.
type Curve struct {
	SimulationSettings
	Sites     int               `json:"sites"`
	Unit      string            `json:"unit"`
	Adjacency account.Adjacency `json:"adjacency"`
	Total     account.Budget    `json:"total"` // of the plan
	Repeats   int               `json:"repeats"`
	Level     float64           `json:"level"` // of predictive intervals
	Epsilons  []float64         `json:"epsilons"`
	Subjects  []int             `json:"subjects"` // at each site
	Points    []Point           `json:"points"`
	Notes     []string          `json:"notes"`

	question, method string
	scoring          *scoring
}

// Point is one measure of one fit over the populations.
type Point struct {
	Fit      string  `json:"fit"`
	Subjects int     `json:"subjects"`          // at each site
	Epsilon  float64 `json:"epsilon,omitempty"` // none of the references
	Measure  string  `json:"measure"`
	N        int     `json:"n"` // populations; fewer than repeats where studies found nothing
	Mean     float64 `json:"mean"`
	SD       float64 `json:"sd"` // between populations, noise included; 0 of one
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
}

// Find returns a point, or nil. References have ε 0.
func (c *Curve) Find(fit string, subjects int, epsilon float64, measure string) *Point {
	i := slices.IndexFunc(c.Points, func(p Point) bool {
		return p.Fit == fit && p.Subjects == subjects && p.Epsilon == epsilon && p.Measure == measure
	})
	if i < 0 {
		return nil
	}
	return &c.Points[i]
}

func (s *simulation) summarise(settings *SimulationSettings, all []simulated, kept *Store[simulatedRecord]) (*Curve, error) {
	p := s.Plan
	c := &Curve{SimulationSettings: *settings, Sites: len(p.Sites), Unit: p.Privacy.Unit, Adjacency: p.Privacy.Adjacency, Total: *p.Privacy.Total,
		Repeats: s.Repeats, Level: Level, Epsilons: s.Epsilons, Subjects: s.Subjects, Points: []Point{}, Notes: []string{},
		question: p.Question, method: p.Method.Name, scoring: s.score.scoring()}
	records := map[simulated]*simulatedRecord{}
	for _, x := range all {
		r, err := kept.Get(x.Key())
		if err != nil {
			return nil, err
		}
		records[x] = r
	}
	failed, reason := 0, ""
	for _, n := range s.Subjects {
		for _, e := range append([]float64{0}, s.Epsilons...) {
			var some []*simulatedRecord
			lost := 0
			for r := range s.Repeats {
				own := records[simulated{n, r, e}]
				c.scoring.gains(own, records[simulated{n, r, 0}])
				some = append(some, own)
				if own.Failed != "" {
					lost++
					reason, _, _ = strings.Cut(own.Failed, "\n")
				}
			}
			if failed += lost; lost > 0 {
				c.Notes = append(c.Notes, problem.Problem{Where: fmt.Sprintf("ε %g, %d subjects at each site", e, n),
					What: fmt.Sprintf("%d of %d studies ended without a model: %s", lost, s.Repeats, reason)}.Error())
			}
			for _, fit := range []string{Private, Open, c.scoring.Baseline} {
				c.add(some, fit, n, e)
			}
		}
	}
	c.Notes = append(c.Notes, c.hopeless()...)
	if failed == len(s.Subjects)*len(s.Epsilons)*s.Repeats {
		return nil, fmt.Errorf("no simulated study found anything: %s", reason)
	}
	return c, nil
}

// Of the way from the baseline to the fit without privacy: below little a study has
// learned next to nothing, from much on it is of use.
const (
	little = 0.1
	much   = 0.5
)

// hopeless says where the plan's total leaves next to nothing to learn, and what of
// all that was simulated would leave more.
func (c *Curve) hopeless() (notes []string) {
	gain := func(n int, epsilon float64) float64 {
		// Any factor describes the values that it is shown; filling in is what it has to learn.
		own, mean, open := c.Find(Private, n, epsilon, ErrorHidden), c.Find(c.scoring.Baseline, n, 0, ErrorHidden), c.Find(Open, n, 0, ErrorHidden)
		if own != nil && mean != nil && open != nil && mean.Mean > open.Mean {
			return (mean.Mean - own.Mean) / (mean.Mean - open.Mean)
		}
		if own = c.Find(Private, n, epsilon, Gain); own != nil {
			return own.Mean
		}
		return math.NaN()
	}
	for _, n := range c.Subjects {
		if !(gain(n, c.Total.Epsilon) < little) {
			continue
		}
		var better []string
		if i := slices.IndexFunc(c.Subjects, func(n int) bool { return gain(n, c.Total.Epsilon) >= much }); i >= 0 {
			better = append(better, fmt.Sprintf("%d subjects at each site", c.Subjects[i]))
		}
		if i := slices.IndexFunc(c.Epsilons, func(e float64) bool { return gain(n, e) >= much }); i >= 0 {
			better = append(better, fmt.Sprintf("ε %g", c.Epsilons[i]))
		}
		hint := "fewer views or features, fewer and larger sites, or more subjects and larger ε than were simulated"
		if better != nil {
			hint = strings.Join(better, ", or ") + ", by this simulation; or fewer views or features, or fewer and larger sites"
		}
		notes = append(notes, problem.Problem{Where: fmt.Sprintf("ε %g, %d subjects at each site", c.Total.Epsilon, n),
			What: "the study would learn next to nothing: it comes less than a tenth of the way from " + c.scoring.Baseline + " to the fit without privacy", Hint: hint}.Error())
	}
	return notes
}

func (c *Curve) add(records []*simulatedRecord, fit string, subjects int, epsilon float64) {
	for _, m := range c.scoring.measures() {
		x := values(records, fit, m.Name)
		if len(x) == 0 {
			continue
		}
		p := Point{Fit: fit, Subjects: subjects, Epsilon: epsilon, Measure: m.Name, N: len(x), Mean: stat.Mean(x, nil), Low: slices.Min(x), High: slices.Max(x)}
		if len(x) > 1 {
			p.SD = math.Sqrt(stat.Variance(x, nil))
		}
		c.Points = append(c.Points, p)
	}
}
