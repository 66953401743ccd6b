package regression_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/judge"
	"parley/methods/regression/fitted"
)

// What is wrong with a site's rows is said with subject and column, or has a
// defined effect.
func TestBadInput(t *testing.T) {
	two := []string{"a", "b"}
	good := drawn(9, 40, 2, yesNo)
	change := func(f func(s *sample)) sample {
		s := sample{Y: slices.Clone(good.Y)}
		for _, x := range good.X {
			s.X = append(s.X, slices.Clone(x))
		}
		f(&s)
		return s
	}
	for name, c := range map[string]struct {
		options string
		s       sample
		want    string // of the error; "" for none
	}{
		"a third label": {twoLevels, change(func(s *sample) { s.Y[7] = "maybe" }),
			`the first is "000007": outcome y: "maybe" is not one of ["no" "yes"]`},
		"no outcome": {twoLevels, change(func(s *sample) { s.Y[7] = "" }),
			`the first is "000007": outcome y: "" is not one of`},
		"no number":        {"outcome: {column: y}\nnoise_variance: 1", good, "is not a finite number"},
		"missing, neutral": {twoLevels, change(func(s *sample) { s.X[3][0] = math.NaN() }), ""},
		"missing, refused": {twoLevels + "missing: refuse", change(func(s *sample) { s.X[3][0] = math.NaN() }),
			`the first is "000003": column x0: the value is missing`},
		"separable":            {twoLevels + "rounds: 60", change(func(s *sample) { separate(s) }), ""},
		"a constant column":    {twoLevels, change(func(s *sample) { each(s, func(x []float64) { x[1] = 3 }) }), ""},
		"a column of zeros":    {twoLevels, change(func(s *sample) { each(s, func(x []float64) { x[1] = 0 }) }), ""},
		"one row and the rest": {twoLevels, change(func(s *sample) { s.X, s.Y = s.X[:2], s.Y[:2] }), ""},
		"a site without rows":  {twoLevels, change(func(s *sample) { s.X, s.Y = s.X[:1], s.Y[:1] }), "no subjects"},
	} {
		p := planOf(t, 2, two, c.options, unprotected)
		out, err := local.Run(t.Context(), config(t, c.s, p))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", name, err, c.want)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", name, err)
			continue
		}
		if strings.HasPrefix(name, "a column of zeros") { // nothing was learned of it
			m := modelOf(t, out.Result)
			close2(t, name, []float64{0, 0.16}, []float64{m.Posterior.Eta[1], m.Posterior.Lambda[1]}, 1e-9)
		}
	}
	// Numbers that nobody can scale.
	text := strings.Replace(planText(2, two, twoLevels, unprotected), "constants: ", "scaling: standard # ", 1)
	p := parse(t, text)
	_, err := local.Run(t.Context(), config(t, change(func(s *sample) { each(s, func(x []float64) { x[1] = 3 }) }), p))
	if err == nil || !strings.Contains(err.Error(), "feature x1: of 40 values the mean is 3") ||
		!strings.Contains(err.Error(), "constant") {
		t.Errorf("a constant column, standard: %v", err)
	}
	_, err = local.Run(t.Context(), config(t,
		change(func(s *sample) { each(s, func(x []float64) { x[1] = math.NaN() }) }), p))
	if err == nil || !strings.Contains(err.Error(), "feature x1: no site has a single value of it") {
		t.Errorf("an empty column, standard: %v", err)
	}
}

// separate makes the first feature tell the classes apart without exception.
func separate(s *sample) {
	for i, x := range s.X {
		x[0] = math.Abs(x[0]) + 1
		if s.Y[i] == "no" {
			x[0] = -x[0]
		}
	}
}

func each(s *sample, f func(x []float64)) {
	for _, x := range s.X {
		f(x)
	}
}

// In a private study nothing but the noised sums may tell of a row that cannot be
// used: it counts for nothing, and the study goes on.
func TestPrivateStudiesDoNotTellOfBadRows(t *testing.T) {
	s := drawn(10, 60, 2, yesNo)
	s.Y[0], s.Y[7] = "maybe", "" // all at site a
	s.X[14][0] = math.NaN()
	p := planOf(t, 2, []string{"a", "b"}, twoLevels+"missing: refuse",
		strings.Replace(protected, "total", "diagnostics: 0.2, total", 1))
	c := config(t, s, p)
	c.Data["b"] = s.Table(t, p, func(int) bool { return false }) // nobody is there, and nobody may know
	m, out := run(t, c)
	if len(out.Left) > 0 || !m.Private {
		t.Errorf("left %v", out.Left)
	}
	reports := testkit.Get(out.SiteReports(t.Context()))(t)
	if n := reports["a"].Result.Metrics["left_out"]; n != 3 {
		t.Errorf("the site's own report leaves out %v rows", n)
	}
}

// broken cannot be read.
type broken struct{ dataset.Source }

func (b broken) Rows(context.Context) iter.Seq2[*dataset.Row, error] {
	return func(yield func(*dataset.Row, error) bool) { yield(nil, fmt.Errorf("the disk is gone")) }
}

func TestUnreadableDataAreAnError(t *testing.T) {
	s := drawn(11, 20, 2, yesNo)
	for _, privacy := range []string{unprotected, protected} {
		p := planOf(t, 2, []string{"a", "b"}, twoLevels, privacy)
		c := config(t, s, p)
		c.Data["b"] = broken{c.Data["b"]}
		if _, err := local.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "disk is gone") {
			t.Errorf("%s: %v", privacy, err)
		}
	}
}

// New rows get the probabilities of the model, and scores where outcomes are known.
func TestPredict(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		header  string
		outcome func(f float64) string
	}{
		"logistic": {twoLevels, "id,predicted,p=no,p=yes", func(f float64) string {
			return map[bool]string{true: "yes", false: "no"}[f > 0]
		}},
		"softmax": {"outcome: {column: y, levels: [low, middle, high]}", "id,predicted,p=low,p=middle,p=high",
			func(f float64) string {
				return []string{"low", "middle", "high"}[int(math.Round(max(-1, min(f, 1))))+1]
			}},
		"linear": {"outcome: {column: y}\nnoise_variance: 0.1", "id,predicted,sd,low,high",
			func(f float64) string { return fmt.Sprint(f) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample{}
			for i := range 60 {
				x := []float64{math.Sin(float64(i)), math.Cos(float64(3 * i))}
				s.X, s.Y = append(s.X, x), append(s.Y, c.outcome(x[0]-0.5*x[1]))
			}
			p := planOf(t, 2, []string{"a", "b"}, c.options, unprotected)
			m, out := run(t, config(t, s, p))
			var b bytes.Buffer
			n, notes, err := m.Predict(t.Context(), s.Table(t, p, nil), &b, 0.9)
			if err != nil || n != 60 || notes != nil {
				t.Fatalf("%d, %v", n, err)
			}
			records, err := csv.NewReader(&b).ReadAll()
			if err != nil || len(records) != 61 || strings.Join(records[0], ",") != c.header {
				t.Fatalf("%d records, %q, %v", len(records), records[0], err)
			}
			if name != "linear" {
				right := 0
				for i, r := range records[1:] {
					sum := 0.0
					for _, cell := range r[2:] {
						x, err := strconv.ParseFloat(cell, 64)
						if err != nil || x < 0 || x > 1 {
							t.Fatalf("probability %q", cell)
						}
						sum += x
					}
					if math.Abs(sum-1) > 1e-12 {
						t.Fatalf("probabilities of %s add up to %v", r[0], sum)
					}
					if r[1] == s.Y[i] {
						right++
					}
				}
				// The sites found the same of the same rows.
				if got := out.Result.Metrics["accuracy"]; math.Abs(got-float64(right)/60) > 1e-12 {
					t.Errorf("accuracy %v, but %d of 60 are right", got, right)
				}
			}
			account := testkit.Get(judge.Score(t.Context(), m, s.Table(t, p, nil), 0.9))(t)
			text := fmt.Sprint(account.Facts)
			if !strings.Contains(text, "subjects 60") || account.Value == nil {
				t.Errorf("scores %s", text)
			}
			bare := p.Schema()
			bare.Subject = nil
			if _, _, err := m.Predict(t.Context(), noOutcomes{s.Table(t, p, nil), bare}, &b, 0.9); err != nil {
				t.Errorf("without outcomes: %v", err)
			}
			if _, err := judge.Score(t.Context(), m, noOutcomes{s.Table(t, p, nil), bare}, 0.9); err == nil ||
				!strings.Contains(err.Error(), `no subject column "y"`) {
				t.Errorf("scores without outcomes: %v", err)
			}
			if _, _, err := m.Predict(t.Context(), s.Table(t, p, nil), &b, 1); err == nil {
				t.Error("an interval of everything")
			}
		})
	}
}

// noOutcomes hides the subject columns.
type noOutcomes struct {
	dataset.Source
	schema dataset.Schema
}

func (n noOutcomes) Schema() dataset.Schema { return n.schema }

// A model file that was changed is refused.
func TestModelsThatDoNotFit(t *testing.T) {
	p := planOf(t, 2, []string{"a", "b"}, twoLevels, protected)
	m, out := run(t, config(t, drawn(12, 30, 2, yesNo), p))
	data := string(out.Result.Files[0].Data)
	for from, to := range map[string]string{
		fitted.ModelFormat:         "parley/pvi-model/9",
		`"likelihood": "logistic"`: `"likelihood": "probit"`,
		`"x1"`:                     `"x0"`,
		`"posterior": {`:           `"posterior": {"eta": [1], "lambda": [1]}, "other": {`,
		`"effects": [`:             `"effects": [], "other": [`,
		`"options": {`:             `"options": null, "other": {`,
	} {
		if _, err := fitted.LoadModel([]byte(strings.ReplaceAll(data, from, to))); err == nil {
			t.Errorf("%s: no error", to)
		}
	}
	summary, err := m.Summary(1)
	if err != nil || len(summary.Tables) != 1 || summary.Tables[0].Len() != 1 {
		t.Errorf("summary %+v, %v", summary, err)
	}
	if n := len(out.Result.Files); n != 3 || strings.Count(string(out.Result.Files[1].Data), "\n") != 4 {
		t.Errorf("%d files", n)
	}
}
