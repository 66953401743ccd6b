package fitted

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/regression/options"
	"parley/problem"
)

// comparison is what compare says, as JSON.
type comparison struct {
	Studies [2]string        `json:"studies"`
	Private [2]bool          `json:"private"`
	Outcome string           `json:"outcome"`
	Only    [2][]string      `json:"effects_only"` // in the first, in the second
	Apart   int              `json:"effects_apart"`
	SDRatio float64          `json:"sd_ratio"` // A's by B's, geometric mean
	Effects []effectContrast `json:"effects"`  // those furthest apart first
	// Predictions are compared where there are data.
	Predictions *predictionContrast `json:"predictions,omitempty"`

	z [2]float64 // standard deviations to both sides that hold 90 %
}

// effectContrast is an effect of both models, in the feature's own unit.
type effectContrast struct {
	Class      string     `json:"class,omitempty"`
	Feature    string     `json:"feature"`
	Mean       [2]float64 `json:"mean"`
	SD         [2]float64 `json:"sd"`
	Difference float64    `json:"difference"`       // A − B
	Deviations float64    `json:"difference_in_sd"` // the same in units of √(sd_A² + sd_B²)
	label      string
}

// farApart is the difference, in standard deviations of both together, from which
// effects count as apart. One in twenty would be so by chance if the fits were of
// different subjects of one population.
const farApart = 2

// Compare implements [method.Comparer]: effects side by side, in the features' own
// units, so that two fits with different scalings are comparable.
func (m *Model) Compare(with method.Model) (*method.Account, error) {
	c, _, err := m.compare(with)
	if err != nil {
		return nil, err
	}
	return c.account(), nil
}

// CompareOn implements [method.DataComparer].
func (m *Model) CompareOn(ctx context.Context, with method.Model, data dataset.Source) (*method.Account, error) {
	c, o, err := m.compare(with)
	if err != nil {
		return nil, err
	}
	if c.Predictions, err = m.predictions(ctx, o, data); err != nil {
		return nil, err
	}
	return c.account(), nil
}

func (m *Model) compare(with method.Model) (*comparison, *Model, error) {
	o, ok := with.(*Model)
	if !ok {
		return nil, nil, problem.Problem{What: fmt.Sprintf("a model of %s cannot be compared with one of %s", m.Method(), with.Method())}
	}
	a, b := m.Options, o.Options
	if a.Outcome.Column != b.Outcome.Column || !slices.Equal(a.Outcome.Levels, b.Outcome.Levels) || a.Likelihood != b.Likelihood {
		return nil, nil, problem.Problem{What: fmt.Sprintf("the models predict other things: %s, and %s: their effects have no common meaning", outcomeOf(a), outcomeOf(b)),
			Hint: "compare two fits of one outcome, with the same levels in the same order"}
	}
	c := &comparison{z: [2]float64{m.Deviate(Z90), o.Deviate(Z90)}, Studies: [2]string{m.Study, o.Study}, Private: [2]bool{m.Private, o.Private}, Outcome: a.Outcome.Column, Effects: []effectContrast{}}
	own, logRatio := m.meanings(), 0.0
	for j, meaning := range o.meanings() {
		e, i := &o.Effects[j], slices.Index(own, meaning)
		if i < 0 {
			c.Only[1] = append(c.Only[1], e.Label())
			continue
		}
		own[i] = "" // has its fellow
		x := &m.Effects[i]
		d := x.Mean - e.Mean
		c.Effects = append(c.Effects, effectContrast{e.Class, e.Feature, [2]float64{x.Mean, e.Mean}, [2]float64{x.SD, e.SD}, d, d / math.Hypot(x.SD, e.SD), e.Label()})
		logRatio += math.Log(x.SD / e.SD)
	}
	for i, meaning := range own { // in the model's order
		if meaning != "" {
			c.Only[0] = append(c.Only[0], m.Effects[i].Label())
		}
	}
	if len(c.Effects) == 0 {
		return nil, nil, problem.Problem{What: "the two models have no effect in common", Hint: "features are matched by name and unit, categories by name, level and reference"}
	}
	c.SDRatio = math.Exp(logRatio / float64(len(c.Effects)))
	slices.SortStableFunc(c.Effects, func(x, y effectContrast) int {
		return cmp.Compare(math.Abs(y.Deviations), math.Abs(x.Deviations))
	})
	for _, x := range c.Effects {
		if math.Abs(x.Deviations) > farApart {
			c.Apart++
		}
	}
	return c, o, nil
}

// meanings say what each effect is: its name, with the unit of a number and the reference of a category; and of what
// holds where others are at their references, as intercepts do and the effects of features that interact, all of these.
func (m *Model) meanings() (all []string) {
	var references, interact []string
	for i := range m.Encoding.Columns {
		references = append(references, m.Encoding.Columns[i].Reference)
	}
	for _, t := range m.Encoding.Interactions {
		interact = append(interact, t[0], t[1])
	}
	groups := m.Encoding.Groups()
	for j, e := range m.Coefficients() {
		says := fmt.Sprintf("%q %q %q %q", e.Class, e.Feature, e.Unit, e.Against)
		if g := groups[j%len(groups)]; e.Base || slices.ContainsFunc(strings.Split(g, " × "), func(part string) bool { return slices.Contains(interact, part) }) {
			says += fmt.Sprintf("%q", references)
		}
		all = append(all, says)
	}
	return all
}

// outcomeOf names what a model is of.
func outcomeOf(o *options.Options) string {
	if len(o.Outcome.Levels) == 0 {
		return "the number " + o.Outcome.Column
	}
	return fmt.Sprintf("%s as one of %q (%s)", o.Outcome.Column, o.Outcome.Levels, o.Likelihood)
}

// predictionContrast is how far apart two models' predictions are.
type predictionContrast struct {
	Subjects int `json:"subjects"`
	// Mean is the mean distance of probabilities of classes, half the sum over classes, and RMS the root mean square
	// difference of expected numbers, in the outcome's unit.
	Mean *float64 `json:"mean_difference_of_probabilities,omitempty"`
	RMS  *float64 `json:"root_mean_square_difference,omitempty"`
}

// predictions asks both models about all rows of data, which are in the first one's
// schema.
func (m *Model) predictions(ctx context.Context, o *Model, data dataset.Source) (*predictionContrast, error) {
	var ask [2]*Forecaster
	for i, model := range []*Model{m, o} {
		var err error
		if ask[i], err = model.Forecaster(data.Schema()); err != nil {
			return nil, problem.Problem{Where: "model " + string("AB"[i]), What: err.Error(), Hint: "data are read as the first model knows them: name the one first that has all features"}
		}
	}
	c := &predictionContrast{}
	var post [2]evaluate.Posterior
	var sum, squares float64
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		for i, f := range ask {
			if err := f.Infer(row, &post[i]); err != nil {
				return nil, fmt.Errorf("model %c, subject %q: %w", "AB"[i], row.ID, err)
			}
		}
		c.Subjects++
		a, b := &post[0].Outcome, &post[1].Outcome
		for k := range a.LogP {
			sum += math.Abs(math.Exp(a.LogP[k])-math.Exp(b.LogP[k])) / 2
		}
		squares += (a.Mean - b.Mean) * (a.Mean - b.Mean)
	}
	n := float64(c.Subjects)
	if sum, squares = sum/n, math.Sqrt(squares/n); c.Subjects == 0 {
		return nil, problem.Problem{Where: "data", What: "there are no subjects in them", Hint: "subjects.csv needs a row for each subject"}
	}
	if c.Mean = &sum; m.Options.Numeric() {
		c.Mean, c.RMS = nil, &squares
	}
	return c, nil
}

// shown is how many effects people see; programs get all.
const shown = 20

func (c *comparison) account() *method.Account {
	a := &method.Account{Value: c}
	say := func(name, value string) { a.Facts = append(a.Facts, figure.Fact{Name: name, Value: value}) }
	say("A", c.Studies[0])
	say("B", c.Studies[1])
	say("outcome", c.Outcome)
	say("effects in common", strconv.Itoa(len(c.Effects)))
	say(fmt.Sprintf("further apart than %d sd", farApart), strconv.Itoa(c.Apart))
	say("sd of A by that of B", figure.General.Text(c.SDRatio))
	for i, name := range []string{"A", "B"} {
		if n := len(c.Only[i]); n > 0 {
			a.Notes.Add(problem.Problem{Where: "model " + name, What: fmt.Sprintf("%d of its effects not compared, since the other lacks them, or has them in another unit or against another reference: %s", n, strings.Join(c.Only[i][:min(n, 8)], ", ")),
				Hint: "name references in both plans (method.references)"})
		}
		if c.Private[i] {
			a.Notes.Add(problem.Problem{Where: "model " + name, What: "it was fitted from noised releases: single effects may be several of their standard deviations from where more updates would have brought them, whatever the intervals say; compare predictions"})
		}
	}
	if p := c.Predictions; p != nil {
		if say("subjects", strconv.Itoa(p.Subjects)); p.RMS != nil {
			say("root mean square difference of predictions", figure.General.Text(*p.RMS))
		} else {
			say("mean difference of probabilities", fmt.Sprintf("%.4f", *p.Mean))
		}
	}
	t := figure.Table{Title: "Effects in the features' own units, those furthest apart first",
		Caption: "Posterior means with intervals of 90 %. The difference is A − B; in sd, it is divided by the root of the sum of both squared standard deviations. Of fits that share subjects, differences are smaller than chance alone would make them between fits of different subjects.",
		Columns: []figure.Column{{Name: "feature"}, {Name: "A"}, {Name: "B"}, {Name: "difference"}, {Name: "in sd"}, {Name: "sd of A by B"}}}
	if n := len(c.Effects) - shown; n > 0 {
		t.Title += fmt.Sprintf(" (%d more with --json)", n)
	}
	interval := func(e effectContrast, i int) string {
		mean, half := e.Mean[i], c.z[i]*e.SD[i]
		return fmt.Sprintf("%s [%s, %s]", figure.General.Text(mean), figure.General.Text(mean-half), figure.General.Text(mean+half))
	}
	for _, e := range c.Effects[:min(shown, len(c.Effects))] {
		t.Add(e.label, interval(e, 0), interval(e, 1), e.Difference, e.Deviations, e.SD[0]/e.SD[1])
	}
	a.Tables = []figure.Table{t}
	return a
}
