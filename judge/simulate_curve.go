package judge

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/privacy/account"
	"parley/problem"
	"parley/study"
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

func (s *simulation) summarise(settings *SimulationSettings, all []simulated,
	kept *Store[simulatedRecord]) (*Curve, error) {
	p := s.Plan
	c := &Curve{SimulationSettings: *settings, Sites: len(p.Sites), Unit: p.Privacy.Unit,
		Adjacency: p.Privacy.Adjacency, Total: *p.Privacy.Total,
		Repeats: s.Repeats, Level: Level, Epsilons: s.Epsilons, Subjects: s.Subjects, Points: []Point{},
		Notes:    []string{},
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
		own, mean, open := c.Find(Private, n, epsilon, ErrorHidden), c.Find(c.scoring.Baseline, n, 0, ErrorHidden),
			c.Find(Open, n, 0, ErrorHidden)
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
			hint = strings.Join(better, ", or ") + ", by this simulation; or fewer views or features, or fewer and " +
				"larger sites"
		}
		notes = append(notes, problem.Problem{Where: fmt.Sprintf("ε %g, %d subjects at each site", c.Total.Epsilon, n),
			What: "the study would learn next to nothing: it comes less than a tenth of the way from " +
				c.scoring.Baseline + " to the fit without privacy", Hint: hint}.Error())
	}
	return notes
}

func (c *Curve) add(records []*simulatedRecord, fit string, subjects int, epsilon float64) {
	for _, m := range c.scoring.measures() {
		x := values(records, fit, m.Name)
		if len(x) == 0 {
			continue
		}
		p := Point{Fit: fit, Subjects: subjects, Epsilon: epsilon, Measure: m.Name, N: len(x), Mean: stat.Mean(x, nil),
			Low: slices.Min(x), High: slices.Max(x)}
		if len(x) > 1 {
			p.SD = math.Sqrt(stat.Variance(x, nil))
		}
		c.Points = append(c.Points, p)
	}
}

// scorer asks fits about subjects who took no part, and knows what learns nothing
// from features.
type scorer interface {
	scoring() *scoring
	score(ctx context.Context, m evaluate.Model, held dataset.Source) (evaluate.Marks, error)
	baseline(ctx context.Context, rows dataset.Source) (evaluate.Model, error)
}

// scorerOf finds out how results of a plan are scored.
func scorerOf(m method.Evaluable, p *study.Plan) (scorer, error) {
	s, ok := m.(method.Supervised)
	if !ok {
		return reconstructed{}, nil
	}
	o, err := s.Outcome(p)
	return predicted{o}, err
}

// scoring is how results are scored and drawn.
type scoring struct {
	evaluate.Scoring
	noise    string  // what [method.Simulation.Noise] is a share of
	share    float64 // that it is unless somebody says otherwise
	pictures []picture
	further  []picture // of less weight
}

// measures lists them in the order to show them in.
func (s *scoring) measures() []evaluate.Measure {
	gain := evaluate.Measure{Name: Gain, Heading: "learned", Percent: true, Higher: true}
	return append([]evaluate.Measure{s.Measures[0], gain}, s.Measures[1:]...)
}

// picture draws times × (x − less) of a measure, against levels that are known
// beforehand, or else against the references.
type picture struct {
	measure                  string
	id, title, caption, text string // the text stands in place of the picture
	axis                     figure.Axis
	times, less              float64
	levels                   []level
}

type level struct {
	name string
	at   float64
}

// learned is the picture of [Gain].
func (s *scoring) learned() picture {
	return picture{measure: Gain, id: "learned", title: "How much of it is learned",
		caption: "The same as a share: 0 is no better than predicting " + s.Baseline +
			", 100 as good as without privacy with as many subjects. ",
		text: "Share of what can be learned that private studies learn, against ε, one line for each number of " +
			"subjects.",
		axis: figure.Axis{Label: "learned, of what there is to learn (%)"}, times: 100,
		levels: []level{{s.Baseline, 0}, {Open, 100}}}
}

// The shares of variance that nothing explains. Of an outcome of two levels, and of events, it is that of an AUC of
// 0.7, which is common for clinical outcomes: on the scale of the logit, where noise has the variance π²/3.
const (
	numbersShare = 0.3
	classesShare = 0.84
)

// predicted scores fits by how well they predict an outcome.
type predicted struct{ outcome evaluate.Outcome }

func (p predicted) scoring() *scoring {
	s := &scoring{Scoring: p.outcome.Scoring(Level), noise: "the outcome's variance", share: numbersShare}
	if len(p.outcome.Levels) > 0 {
		s.share = classesShare
	}
	for i, m := range s.Measures {
		d := picture{measure: m.Name, id: strings.ReplaceAll(m.Name, "_", "-"), title: m.Title, times: 1}
		unit := m.Unit
		if m.Percent {
			d.times, unit = 100, "%"
		}
		switch {
		case m.Right > 0:
			d.levels = []level{{"as promised", d.times * m.Right}}
			d.caption = "Below the dashed line intervals promise too much, above it they are too wide. "
		case m.Higher:
			d.caption = "Higher is better. "
		default:
			d.caption = "Lower is better. "
		}
		d.axis.Label = m.Heading
		if unit != "" {
			d.axis.Label += " (" + unit + ")"
		}
		d.text = m.Title + " in private studies against ε, one line for each number of subjects, beside " + s.Baseline +
			" and the fit without privacy."
		s.pictures = append(s.pictures, d)
		if i == 0 {
			s.pictures = append(s.pictures, s.learned())
		}
	}
	return s
}

func (p predicted) score(ctx context.Context, m evaluate.Model, held dataset.Source) (evaluate.Marks, error) {
	j, err := p.outcome.Judge(ctx, m, held, Level)
	if err != nil {
		return nil, err
	}
	return j.Marks, nil
}

func (p predicted) baseline(ctx context.Context, rows dataset.Source) (evaluate.Model, error) {
	return p.outcome.FitBaseRate(ctx, rows)
}

// reconstructed scores fits by how well they describe features.
type reconstructed struct{}

func (reconstructed) scoring() *scoring {
	const parts = "parts of a feature's range"
	s := &scoring{noise: "every feature's variance", share: numbersShare, Scoring: evaluate.Scoring{
		Measures: []evaluate.Measure{
			{Name: Error, Heading: "error", Title: "Error", Unit: parts},
			{Name: ErrorHidden, Heading: "hidden views", Unit: parts},
			{Name: Coverage, Heading: "covered", Percent: true, Right: Level},
			{Name: LogLik, Heading: "log-likelihood", Unit: "nats per subject", Higher: true},
		},
		Baseline: Mean,
		About: "Errors are mean absolute errors of describing those held out by the factors seen in them, in parts " +
			"of a feature's range among them: 0.1 is a tenth of the range.",
	}}
	errors := figure.Axis{Label: "mean absolute error (" + parts + ")", Log: true}
	s.pictures = []picture{{measure: Error, id: "error", title: "Error on subjects who took no part",
		caption: "Lower is better; both axes are logarithmic. ",
		text: "Error of private studies against ε, one line for each number of subjects, between the error of the " +
			"mean and that without privacy.",
		axis: errors, times: 1}, s.learned()}
	s.further = []picture{
		{measure: ErrorHidden, id: "hidden", title: "Filling in a view that was hidden",
			caption: "Each view was hidden in turn from those held out, and predicted from their other views. Lower " +
				"is better. ",
			text: "Error of hidden views against ε, one line for each number of subjects.", axis: errors, times: 1},
		{measure: Coverage, id: "coverage", title: fmt.Sprintf("Do the %.0f %% intervals hold what they promise?",
			100*Level),
			caption: fmt.Sprintf("Of all hidden values, %.0f in 100 should lie inside their predictive intervals. "+
				"Below zero the intervals promise too much, above it they are too wide. ", 100*Level),
			text: "Coverage of predictive intervals against ε as the difference from the level, one line for each " +
				"number of subjects.",
			axis: figure.Axis{Label: fmt.Sprintf("coverage − %.0f %%, in percentage points", 100*Level)}, times: 100,
			less: Level, levels: []level{{"as promised", 0}}},
	}
	return s
}

func (reconstructed) score(ctx context.Context, m evaluate.Model, held dataset.Source) (evaluate.Marks, error) {
	unit, err := evaluate.FitMinMax(ctx, held)
	if err != nil {
		return nil, err
	}
	d, err := evaluate.Describe(ctx, unit, m, held, Level)
	if err != nil {
		return nil, err
	}
	s := evaluate.Marks{}
	s.Set(Error, d.MAE)
	s.Set(ErrorHidden, d.Hidden.MAE)
	s.Set(Coverage, d.Hidden.Coverage)
	s.Set(LogLik, d.LogLik)
	return s, nil
}

func (reconstructed) baseline(ctx context.Context, rows dataset.Source) (evaluate.Model, error) {
	return evaluate.FitMean(ctx, rows)
}
