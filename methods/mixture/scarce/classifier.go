package scarce

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/internal/nn"
	"parley/internal/stats"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/methods/mixture/report"
	"parley/problem"
)

// ClassifierFormat names the format of the classifier that a site's own report leaves.
const ClassifierFormat = "parley/graffl-classifier/1"

// Classifier is a site's classifier of the scarce class, as its own report leaves it: for
// its own subjects, and made of their rows without noise. It never leaves the site.
type Classifier struct {
	Format  string `json:"format"`            // ClassifierFormat
	Program string `json:"program,omitempty"` // what wrote it, if it was older: a model does not depend on that
	Plan    string `json:"plan_sha256"`
	Study   string `json:"study"`
	Site    string `json:"site"`
	// Synthetic is how many synthetic rows of the class it was fitted to beside the site's own.
	Synthetic int                `json:"synthetic_rows"`
	Target    options.Outcome    `json:"outcome"`
	Class     string             `json:"class"` // whose probability it gives
	Views     []report.ModelView `json:"views"`
	Encoder   *nn.Encoder        `json:"encoder,omitempty"` // none: rows are features as they are, all of which must be there
	Units     ClassifierUnits    `json:"units"`             // of codes or features
	Weights   []float64          `json:"weights"`           // by (x − centre)/scale
	Intercept float64            `json:"intercept"`         // such that probabilities are those of this site's own subjects
}

// ClassifierUnits bring a number x to (x − Centre)/Scale.
type ClassifierUnits struct {
	Centre []float64 `json:"centre"`
	Scale  []float64 `json:"scale"`
}

// classifierFile writes the classifier that a comparison chose.
func (h half) classifierFile(w *classifierComparison) (method.File, error) {
	digest, err := h.Plan.Digest()
	if err != nil {
		return method.File{}, err
	}
	in := unitsOf(h.Setup)
	c := Classifier{Format: ClassifierFormat, Plan: digest.String(), Study: h.Plan.Name, Site: h.Name, Synthetic: len(w.Synthetic),
		Target: h.Options.Scarce.Outcome, Class: h.Options.Scarce.Class, Views: report.ViewsOf(h.Plan), Encoder: h.Encoder, Units: ClassifierUnits{in.Centre, in.Scale},
		Weights: w.Classifier.Weights, Intercept: w.Classifier.Intercept}
	data, err := json.MarshalIndent(c, "", " ")
	if err != nil {
		return method.File{}, fmt.Errorf("writing the classifier: %w", err)
	}
	return method.File{Name: "model/model.json", Data: append(data, '\n')}, nil
}

// LoadClassifier reads the model.json of a site's own report. One of another format or version is
// refused by name, and whatever else is wrong with it is an error.
func LoadClassifier(data []byte) (*Classifier, error) {
	if err := method.CheckFormat(data, ClassifierFormat); err != nil {
		return nil, err
	}
	c := new(Classifier)
	err := json.Unmarshal(data, c)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, fmt.Errorf("reading a classifier: %w", err)
	}
	return c, nil
}

func (c *Classifier) check() error {
	inputs := 0
	for _, n := range c.widths() {
		inputs += n
	}
	d := inputs
	if c.Encoder != nil {
		if err := c.Encoder.Check(); err != nil {
			return err
		}
		if n := len(c.Encoder.Inputs.Centre); n != inputs {
			return fmt.Errorf("an encoder of %d inputs, where its views have %d features", n, inputs)
		}
		d = c.Encoder.Dimension()
	}
	if d == 0 || len(c.Weights) != d || len(c.Units.Centre) != d || len(c.Units.Scale) != d {
		return fmt.Errorf("%d weights, %d centres and %d scales of %d numbers", len(c.Weights), len(c.Units.Centre), len(c.Units.Scale), d)
	}
	for i, s := range c.Units.Scale {
		if !(s > 0) {
			return fmt.Errorf("a scale of %v: want positive ones", s)
		}
		if !(math.Abs(c.Weights[i]) <= maxLinear && math.Abs(c.Units.Centre[i]) <= math.MaxFloat64) {
			return fmt.Errorf("a weight of %v and a centre of %v: want at most ±%v, and a finite number", c.Weights[i], c.Units.Centre[i], float64(maxLinear))
		}
	}
	if !(math.Abs(c.Intercept) <= maxLinear) {
		return fmt.Errorf("an intercept of %v: want at most ±%v", c.Intercept, float64(maxLinear))
	}
	if len(c.Target.Levels) < 2 || !slices.Contains(c.Target.Levels, c.Class) {
		return fmt.Errorf("class %q is not among the levels %q", c.Class, c.Target.Levels)
	}
	return nil
}

func (c *Classifier) widths() (widths []int) {
	for _, v := range c.Views {
		widths = append(widths, len(v.Columns))
	}
	return widths
}

// Method implements [method.Model].
func (c *Classifier) Method() string { return options.Name }

// Schema implements [method.Model].
func (c *Classifier) Schema() dataset.Schema { return report.Schema(c.Views) }

// Outcome implements [method.Predictor].
func (c *Classifier) Outcome() []string { return []string{c.Target.Column} }

// other is what a subject is that is not of the class.
func (c *Classifier) other() string {
	if l := c.Target.Levels; len(l) == 2 {
		return l[1-slices.Index(l, c.Class)]
	}
	return "not " + c.Class
}

// Predict implements [method.Predictor]: of each subject, which class is more probable and the
// probability of the scarce one; both are empty where a feature is missing and there is no encoder. It has no
// intervals: the level in opts has no effect.
func (c *Classifier) Predict(ctx context.Context, data dataset.Source, to io.Writer, opts method.PredictOptions) (int, *method.Account, error) {
	w := csv.NewWriter(to)
	if err := w.Write([]string{"id", "predicted", "p=" + c.Class}); err != nil {
		return 0, nil, err
	}
	all := func(*dataset.Row) bool { return true }
	at := slices.IndexFunc(data.Schema().Subject, func(s dataset.Column) bool { return s.Name == c.Target.Column })
	if opts.Score && at < 0 {
		return 0, nil, problem.Problem{Where: "data", What: fmt.Sprintf("they have no column %q", c.Target.Column), Hint: "a column of subjects.csv"}
	}
	subjects, skipped := 0, 0
	var p []float64
	var labels []bool
	x := make([]float64, len(c.Weights))
	for row, err := range options.Coded(data, c.Encoder, c.widths(), all).Rows(ctx) {
		if err != nil {
			return subjects, nil, err
		}
		subjects++
		if !options.Complete(row, x) {
			skipped++
			if err := w.Write([]string{row.ID, "", ""}); err != nil {
				return subjects, nil, err
			}
			continue
		}
		own := c.probability(x)
		predicted := c.other()
		if own > 0.5 {
			predicted = c.Class
		}
		if err := w.Write([]string{row.ID, predicted, strconv.FormatFloat(own, 'g', -1, 64)}); err != nil {
			return subjects, nil, err
		}
		if opts.Score {
			level := row.Subject[at]
			if !slices.Contains(c.Target.Levels, level) {
				return subjects, nil, fmt.Errorf("subject %q: outcome %s: %q is not one of %q", row.ID, c.Target.Column, level, c.Target.Levels)
			}
			p, labels = append(p, own), append(labels, level == c.Class)
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return subjects, nil, err
	}
	if subjects == 0 {
		return 0, nil, problem.Problem{Where: "data", What: "there are no subjects in them", Hint: "subjects.csv needs a row for each subject"}
	}
	if !opts.Score {
		return subjects, nil, nil
	}
	account, err := scored(p, labels, skipped)
	return subjects, account, err
}

// probability of the class, for a row of features or a code.
func (c *Classifier) probability(x []float64) float64 {
	s := c.Intercept
	for i, u := range toUnits(&nn.Inputs{Centre: c.Units.Centre, Scale: c.Units.Scale}, x) {
		s += c.Weights[i] * u
	}
	return stats.Logistic(s)
}

// scored says how well outcomes were predicted.
func scored(p []float64, labels []bool, skipped int) (*method.Account, error) {
	if len(p) == 0 {
		return nil, problem.Problem{Where: "data", What: "no subject has all features, so that there is nothing to score"}
	}
	s, err := ScoreClassifier(p, labels)
	if err != nil {
		return nil, err
	}
	v := struct {
		Subjects int      `json:"subjects"`
		Skipped  int      `json:"without_prediction"`
		AUC      *float64 `json:"auc,omitempty"` // none: all subjects are of one class
		Accuracy float64  `json:"accuracy"`
		F1       float64  `json:"f1"`
	}{Subjects: len(p), Skipped: skipped, Accuracy: s.Accuracy, F1: s.F1}
	out := &method.Account{Facts: []figure.Fact{{Name: "subjects", Value: strconv.Itoa(len(p))}}}
	if skipped > 0 {
		out.Facts = append(out.Facts, figure.Fact{Name: "without prediction: a feature is missing", Value: strconv.Itoa(skipped)})
	}
	if !math.IsNaN(s.AUC) {
		v.AUC = &s.AUC
		out.Facts = append(out.Facts, figure.Fact{Name: "AUC", Value: fmt.Sprintf("%.3f", s.AUC)})
	}
	out.Facts = append(out.Facts, figure.Fact{Name: "accuracy (%)", Value: fmt.Sprintf("%.2f", 100*s.Accuracy)}, figure.Fact{Name: "F1", Value: fmt.Sprintf("%.3f", s.F1)})
	out.Value = v
	return out, nil
}

// Summary implements [method.Summariser].
func (c *Classifier) Summary(int) (*method.Account, error) {
	of := "features"
	if c.Encoder != nil {
		of = "codes"
	}
	return &method.Account{
		Facts: []figure.Fact{{Name: "study", Value: c.Study}, {Name: "method", Value: c.Method() + ", a site's own classifier"}, {Name: "site", Value: c.Site},
			{Name: "outcome", Value: c.Target.Column + " " + c.Class}, {Name: "fitted to", Value: fmt.Sprintf("%s of the site's own rows and %d synthetic ones", of, c.Synthetic)},
			{Name: "privacy", Value: "none: it is for the site's own people"}, {Name: "plan", Value: c.Plan}},
		Value: struct {
			Format    string `json:"format"`
			Study     string `json:"study"`
			Plan      string `json:"plan_sha256"`
			Site      string `json:"site"`
			Outcome   string `json:"outcome"`
			Class     string `json:"class"`
			Synthetic int    `json:"synthetic_rows"`
		}{c.Format, c.Study, c.Plan, c.Site, c.Target.Column, c.Class, c.Synthetic},
	}, nil
}
