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
	"parley/methods/regression/glm"
	"parley/methods/regression/options"
	"parley/problem"
)

// comparison is what compare says, as JSON.
type comparison struct {
	Studies  [2]string        `json:"studies"`
	Private  [2]bool          `json:"private"`
	Outcome  string           `json:"outcome"`
	Only     [2][]string      `json:"effects_only"` // in the first, in the second
	Apart    int              `json:"effects_apart"`
	Opposite int              `json:"effects_opposite"`
	SDRatio  float64          `json:"sd_ratio"` // A's by B's, geometric mean
	Effects  []effectContrast `json:"effects"`  // those furthest apart first
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
}

// farApart is the difference, in standard deviations of both together, from which
// effects count as apart. One in twenty would be so by chance if the fits were of
// different subjects of one population.
const farApart = 2

// Compare implements [method.Comparer]: effects side by side, in the features' own
// units, so that two fits with different scalings are comparable.
func (m *Model) Compare(with method.Model) (*method.Account, error) {
	c, notes, _, err := m.compare(with)
	if err != nil {
		return nil, err
	}
	return c.account(notes), nil
}

// CompareOn implements [method.DataComparer].
func (m *Model) CompareOn(ctx context.Context, with method.Model, data dataset.Source) (*method.Account, error) {
	c, notes, o, err := m.compare(with)
	if err != nil {
		return nil, err
	}
	if c.Predictions, err = m.predictions(ctx, o, data); err != nil {
		return nil, err
	}
	return c.account(notes), nil
}

func (m *Model) compare(with method.Model) (*comparison, method.Notes, *Model, error) {
	o, ok := with.(*Model)
	if !ok {
		return nil, nil, nil, problem.Problem{What: fmt.Sprintf("a model of %s cannot be compared with one of %s", m.Method(), with.Method())}
	}
	a, b := m.Options, o.Options
	if a.Outcome.Column != b.Outcome.Column || !slices.Equal(a.Outcome.Levels, b.Outcome.Levels) || a.Likelihood != b.Likelihood {
		return nil, nil, nil, problem.Problem{What: fmt.Sprintf("the models predict other things: %s, and %s: their effects have no common meaning", outcomeOf(a), outcomeOf(b)),
			Hint: "compare two fits of one outcome, with the same levels in the same order"}
	}
	c := &comparison{z: [2]float64{m.Deviate(Z90), o.Deviate(Z90)}, Studies: [2]string{m.Study, o.Study}, Private: [2]bool{m.Private, o.Private}, Outcome: m.Options.Outcome.Column, Effects: []effectContrast{}}
	type key struct{ class, feature string }
	at := map[key]*outcomeEffect{}
	for i := range m.Effects {
		at[key{m.Effects[i].Class, m.Effects[i].Feature}] = &m.Effects[i]
	}
	other, notes := m.incomparable(o)
	logRatio := 0.0
	for i := range o.Effects {
		e := &o.Effects[i]
		k := key{e.Class, e.Feature}
		own := at[k]
		delete(at, k)
		switch {
		case own == nil:
			c.Only[1] = append(c.Only[1], e.Label())
			continue
		case slices.ContainsFunc(strings.Split(e.Feature, " × "), func(part string) bool { return other[part] }):
			continue
		}
		d := own.Mean - e.Mean
		x := effectContrast{Class: e.Class, Feature: e.Feature, Mean: [2]float64{own.Mean, e.Mean}, SD: [2]float64{own.SD, e.SD}, Difference: d, Deviations: d / math.Hypot(own.SD, e.SD)}
		if math.Abs(x.Deviations) > farApart {
			c.Apart++
		}
		if own.Mean*e.Mean < 0 && math.Abs(own.Mean) > c.z[0]*own.SD && math.Abs(e.Mean) > c.z[1]*e.SD {
			c.Opposite++
		}
		logRatio += math.Log(own.SD / e.SD)
		c.Effects = append(c.Effects, x)
	}
	for i := range m.Effects { // in the model's order
		if e := &m.Effects[i]; at[key{e.Class, e.Feature}] != nil {
			c.Only[0] = append(c.Only[0], e.Label())
		}
	}
	if len(c.Effects) == 0 {
		return nil, nil, nil, problem.Problem{What: "the two models have no effect in common", Hint: "features are matched by name, categories by name and level"}
	}
	c.SDRatio = math.Exp(logRatio / float64(len(c.Effects)))
	slices.SortStableFunc(c.Effects, func(x, y effectContrast) int {
		return cmp.Compare(math.Abs(y.Deviations), math.Abs(x.Deviations))
	})
	return c, notes, o, nil
}

// outcomeOf names what a model is of.
func outcomeOf(o *options.Options) string {
	if len(o.Outcome.Levels) == 0 {
		return "the number " + o.Outcome.Column
	}
	return fmt.Sprintf("%s as one of %q (%s)", o.Outcome.Column, o.Outcome.Levels, o.Likelihood)
}

// incomparable finds effects that do not mean the same in both models: of numbers in
// different units, of categories against different references, and with these the
// intercept's.
func (m *Model) incomparable(o *Model) (map[string]bool, method.Notes) {
	type column struct{ unit, reference string }
	own := map[string]column{}
	for _, c := range m.Encoding.Columns {
		own[c.Name] = column{m.unit(c.Name), c.Reference}
	}
	other := map[string]bool{}
	var notes method.Notes
	for _, c := range o.Encoding.Columns {
		a, ok := own[c.Name]
		b := column{o.unit(c.Name), c.Reference}
		switch {
		case !ok:
		case len(c.Levels) == 0 && a.unit != b.unit:
			other[c.Name] = true
			notes.Add(problem.Problem{Where: "feature " + c.Name, What: fmt.Sprintf("not compared: its unit is %q in A and %q in B", a.unit, b.unit)})
		case len(c.Levels) > 0 && a.reference != b.reference:
			for _, level := range c.Levels {
				other[c.Name+"="+level] = true
			}
			other["intercept"] = true
			notes.Add(problem.Problem{Where: "feature " + c.Name, What: fmt.Sprintf("not compared: effects are against %s in A and %s in B", against(a.reference), against(b.reference)),
				Hint: "name the reference in both plans, or compare predictions with --data"})
		}
	}
	// What an interaction shares with such a category is its effect at the reference.
	for i := range o.Effects {
		if parts := strings.Split(o.Effects[i].Feature, " × "); slices.ContainsFunc(parts, func(part string) bool { return other[part] }) {
			for _, part := range parts {
				other[part] = true
			}
		}
	}
	return other, notes
}

// against names a reference level.
func against(level string) string {
	if level == "" {
		return "no level"
	}
	return strconv.Quote(level)
}

// unit is that of a feature, as the plan has it.
func (m *Model) unit(feature string) string {
	for _, v := range m.Views {
		for _, c := range v.Columns {
			if c.Name == feature {
				return c.Unit
			}
		}
	}
	return ""
}

// predictionContrast is how far apart two models' predictions are.
type predictionContrast struct {
	Subjects int `json:"subjects"`
	// Of classes: how often both think the same the most probable, and the mean and
	// the largest distance of their probabilities, half the sum over classes.
	Same    *float64 `json:"same_class,omitempty"`
	Mean    *float64 `json:"mean_difference_of_probabilities,omitempty"`
	Largest *float64 `json:"largest_difference_of_probabilities,omitempty"`
	// Of numbers: the root mean square difference of what is expected, in the outcome's
	// unit, and the geometric mean of A's standard deviations by B's.
	RMS     *float64 `json:"root_mean_square_difference,omitempty"`
	SDRatio *float64 `json:"sd_ratio,omitempty"`
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
	var same, sum, largest, squares, logRatio float64
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
		if len(a.LogP) == 0 {
			squares += (a.Mean - b.Mean) * (a.Mean - b.Mean)
			logRatio += math.Log(a.SD / b.SD)
			continue
		}
		d := 0.0
		for k := range a.LogP {
			d += math.Abs(math.Exp(a.LogP[k])-math.Exp(b.LogP[k])) / 2
		}
		sum, largest = sum+d, max(largest, d)
		if mostProbable(a) == mostProbable(b) {
			same++
		}
	}
	n := float64(c.Subjects)
	switch {
	case c.Subjects == 0:
		return nil, problem.Problem{Where: "data", What: "there are no subjects in them", Hint: "subjects.csv needs a row for each subject"}
	case m.Options.Numeric():
		rms, ratio := math.Sqrt(squares/n), math.Exp(logRatio/n)
		c.RMS, c.SDRatio = &rms, &ratio
	default:
		same, sum = same/n, sum/n
		c.Same, c.Mean, c.Largest = &same, &sum, &largest
	}
	return c, nil
}

func mostProbable(p *evaluate.Prediction) int { return slices.Index(p.LogP, slices.Max(p.LogP)) }

// shown is how many effects people see; programs get all.
const shown = 20

func (c *comparison) account(notes method.Notes) *method.Account {
	a := &method.Account{Value: c, Notes: notes}
	say := func(name, value string) { a.Facts = append(a.Facts, figure.Fact{Name: name, Value: value}) }
	say("A", c.Studies[0])
	say("B", c.Studies[1])
	say("outcome", c.Outcome)
	say("effects in common", strconv.Itoa(len(c.Effects)))
	say(fmt.Sprintf("further apart than %d sd", farApart), strconv.Itoa(c.Apart))
	say("intervals on opposite sides of 0", strconv.Itoa(c.Opposite))
	say("sd of A by that of B", figure.General.Text(c.SDRatio))
	for i, name := range []string{"A", "B"} {
		if n := len(c.Only[i]); n > 0 {
			a.Notes.Add(problem.Problem{Where: "model " + name, What: fmt.Sprintf("%d of its effects not compared, since the other lacks them: %s", n, strings.Join(c.Only[i][:min(n, 8)], ", "))})
		}
		if c.Private[i] {
			a.Notes.Add(problem.Problem{Where: "model " + name, What: "it was fitted from noised releases: single effects may be several of their standard deviations from where more updates would have brought them, whatever the intervals say; compare predictions"})
		}
	}
	if p := c.Predictions; p != nil {
		say("subjects", strconv.Itoa(p.Subjects))
		if p.RMS != nil {
			say("root mean square difference of predictions", figure.General.Text(*p.RMS))
			say("sd of A's predictions by that of B's", figure.General.Text(*p.SDRatio))
		} else {
			say("same class predicted (%)", fmt.Sprintf("%.2f", 100**p.Same))
			say("mean difference of probabilities", fmt.Sprintf("%.4f", *p.Mean))
			say("largest difference of probabilities", fmt.Sprintf("%.4f", *p.Largest))
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
		name := outcomeEffect{Class: e.Class, Effect: glm.Effect{Feature: e.Feature}}
		t.Add(name.Label(), interval(e, 0), interval(e, 1), e.Difference, e.Deviations, e.SD[0]/e.SD[1])
	}
	a.Figures, a.Tables = []figure.Figure{c.picture()}, []figure.Table{t}
	return a
}

// picture shows effects side by side, in units of the standard deviations of both, so that
// effects of all sizes are seen.
func (c *comparison) picture() figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "effect, in standard deviations of its estimates"}}
	for _, e := range c.Effects[:min(shown, len(c.Effects))] {
		name, unit := outcomeEffect{Class: e.Class, Effect: glm.Effect{Feature: e.Feature}}, math.Hypot(e.SD[0], e.SD[1])
		for i, model := range []string{"A", "B"} {
			b.Labels, b.Groups = append(b.Labels, name.Label()), append(b.Groups, model)
			b.Values = append(b.Values, e.Mean[i]/unit)
			b.Low, b.High = append(b.Low, (e.Mean[i]-c.z[i]*e.SD[i])/unit), append(b.High, (e.Mean[i]+c.z[i]*e.SD[i])/unit)
		}
	}
	return figure.Figure{ID: "effects-compared", Title: "Effects of both models, those furthest apart first", Chart: b,
		Caption: "Marks are posterior means with intervals of 90 %, divided by the root of the sum of both squared standard deviations. Marks that lie more than 2 apart are further apart than chance usually takes two fits of different subjects.",
		Alt:     "Forest plot of the effects of two models side by side."}
}
