package glm

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"parley/dataset"
	"parley/internal/vectors"
	"parley/judge/evaluate"
)

const incomeData = "../../../examples/income/data"

// The columns of the census data, in the order of the design matrix.
var (
	adultNumbers    = []string{"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
	adultCategories = []string{"workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"}
)

// incomeOutcome is what the example predicts.
var incomeOutcome = Outcome{Column: "income", Levels: []string{"<=50K", ">50K"}}

// incomeTable is the example's data with the schema that a plan would give them.
var incomeTable = sync.OnceValues(func() (*dataset.Table, error) {
	ctx := context.Background()
	schema := dataset.Schema{Views: []dataset.View{{Name: "person"}}}
	for _, c := range []string{"income", "split", "A", "B", "C", "D", "uci"} {
		schema.Subject = append(schema.Subject, dataset.Column{Name: c, Kind: dataset.Label})
	}
	cells, err := incomeCells()
	if err != nil {
		return nil, err
	}
	for _, name := range adultNumbers {
		schema.Views[0].Columns = append(schema.Views[0].Columns, dataset.Column{Name: name})
	}
	for _, name := range adultCategories {
		schema.Views[0].Columns = append(schema.Views[0].Columns,
			dataset.Column{Name: name, Kind: dataset.Category, Levels: slices.Compact(slices.Sorted(slices.Values(cells[name])))})
	}
	dir, err := dataset.Open(ctx, incomeData, dataset.Options{Schema: &schema})
	if err != nil {
		return nil, err
	}
	return dataset.Collect(ctx, dir)
})

// incomeCells reads the example's files as text, by column.
func incomeCells() (map[string][]string, error) {
	cells := map[string][]string{}
	for _, name := range []string{"subjects.csv.gz", "view_person.csv.gz"} {
		f, err := os.Open(incomeData + "/" + name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		unpacked, err := gzip.NewReader(f)
		if err != nil {
			return nil, err
		}
		records, err := csv.NewReader(unpacked).ReadAll()
		if err != nil {
			return nil, err
		}
		for i, column := range records[0] {
			for _, r := range records[1:] {
				cells[column] = append(cells[column], r[i])
			}
		}
	}
	return cells, nil
}

// income is the example as the published experiments see it: numbers
// standardised over all rows, and rows sorted by a subject column.
func income(t testing.TB, by string) map[string]*Design {
	t.Helper()
	_, parts, err := divided(by, "")
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// divided is the same with numbers standardised over the rows of one part.
func divided(by, part string) (*Encoding, map[string]*Design, error) {
	table, err := incomeTable()
	if err != nil {
		return nil, nil, err
	}
	schema := table.Schema()
	label := slices.IndexFunc(schema.Subject, func(c dataset.Column) bool { return c.Name == by })
	var e Encoding
	for j, c := range schema.Views[0].Columns {
		if c.Kind == dataset.Category {
			e.Columns = append(e.Columns, Column{Name: c.Name, Levels: c.Levels})
			continue
		}
		var values []float64
		for r := range table.Rows(context.Background()) {
			values = append(values, r.Views[0][j])
		}
		e.Columns = append(e.Columns, standardised(c.Name, values, func(i int) bool { return part == "" || table.Row(i).Subject[label] == part }))
	}
	b, err := e.Bind(schema, &incomeOutcome)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]*Design{}
	var row Row
	for r := range table.Rows(context.Background()) {
		y, err := b.Outcome(Logistic{}, r)
		if err == nil {
			err = b.Row(r, &row)
		}
		if err != nil {
			return nil, nil, err
		}
		d := out[r.Subject[label]]
		if d == nil {
			d = NewDesign(e.Width())
			out[r.Subject[label]] = d
		}
		if err := d.Append(row, y); err != nil {
			return nil, nil, err
		}
	}
	return &e, out, nil
}

// The ceiling of the method: exact central inference on the fixed split, numbers
// of an independent implementation (numpy).
func TestExactInferenceReachesThePublishedCeiling(t *testing.T) {
	parts := income(t, "split")
	prior := Isotropic(108, 0, 1)
	local := Local{Logistic{}, parts["train"], prior}
	q, info, err := local.Optimum(prior, Solve{})
	if err != nil || !info.Converged || info.Gradient > 1e-8 {
		t.Fatalf("%+v, %v", info, err)
	}
	if math.Abs(info.Value+12580.819357643) > 1e-6 {
		t.Errorf("ELBO %.9f, want -12580.819357643", info.Value)
	}
	p, err := PredictBinary(parts["test"], q, false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Correct != 8314 || math.Abs(p.LogLik+0.317013) > 5e-7 {
		t.Errorf("%d rows correct, log-likelihood %.6f; want 8314 and -0.317013", p.Correct, p.LogLik)
	}
	var c evaluate.Calibration
	for i, x := range p.Expected {
		c.Add(x, parts["test"].Outcome(i) > 0)
	}
	if c.Error() > 0.02 {
		t.Errorf("calibration %+v", c)
	}
}

func BenchmarkExactInferenceOnAdult(b *testing.B) {
	train := income(b, "split")["train"]
	prior := Isotropic(108, 0, 1)
	local := Local{Logistic{}, train, prior}
	b.ReportAllocs()
	for b.Loop() {
		if _, info, err := local.Optimum(prior, Solve{}); err != nil || !info.Converged {
			b.Fatal(info, err)
		}
	}
}

// standardised declares a number by its mean and its deviation (divisor n) over
// some rows.
func standardised(name string, values []float64, of func(row int) bool) Column {
	var n, mean, square float64
	for i, x := range values {
		if of(i) {
			n++
			mean += x
		}
	}
	mean /= n
	for i, x := range values {
		if of(i) {
			square += (x - mean) * (x - mean)
		}
	}
	return Column{Name: name, Centre: mean, Scale: math.Sqrt(square / n)}
}

// dense returns a row of a design with its zeros.
func dense(d *Design, i int) []float64 {
	x := make([]float64, d.Columns())
	r := d.Row(i)
	for k, j := range r.Index {
		x[j] = r.Value[k]
	}
	return x
}

// Central inference on the source's own training rows gives the numbers of an independent
// implementation, which ../testdata/pvi/README.md describes.
func TestVectorsOfTheAdultData(t *testing.T) {
	var f struct {
		Schema     string             `json:"schema"`
		Features   []string           `json:"features"`
		Train      int                `json:"n_train"`
		Test       int                `json:"n_test"`
		Prior      map[string]float64 `json:"prior"`
		FirstTrain []float64          `json:"first_train_row"`
		FirstTest  []float64          `json:"first_test_row"`
		Sums       []float64          `json:"column_sums_train"`
		ELBO       float64            `json:"elbo"`
		Mean       []float64          `json:"mean"`
		Var        []float64          `json:"var"`
		Accuracy   float64            `json:"test_accuracy_probit"`
		Correct    int                `json:"test_correct"`
		LogLik     float64            `json:"test_mean_log_lik_probit"`
		AccuracyEx float64            `json:"test_accuracy_exact"`
		LogLikEx   float64            `json:"test_mean_log_lik_exact"`
	}
	file, err := os.ReadFile("testdata/adult_exact.json")
	if err == nil {
		err = vectors.Decode(file, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	e, parts, err := divided("uci", "train")
	if err != nil {
		t.Fatal(err)
	}
	train, test := parts["train"], parts["test"]
	local := Local{Likelihood: Logistic{}, Data: train, Cavity: Isotropic(train.Columns(), f.Prior["mean"], f.Prior["var"])}
	q, info, err := local.Optimum(local.Cavity, Solve{})
	if err != nil || !info.Converged {
		t.Fatal(info, err)
	}
	probit, err := PredictBinary(test, q, false)
	if err != nil {
		t.Fatal(err)
	}
	exact, err := PredictBinary(test, q, true)
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]float64, train.Columns())
	for i := range train.Rows() {
		for j, x := range dense(train, i) {
			sums[j] += x
		}
	}
	if !slices.Equal(f.Features, e.Features()) || f.Train != train.Rows() || f.Test != test.Rows() || math.Abs(float64(f.Correct-probit.Correct)) > 2 {
		t.Errorf("%d and %d rows, %d correct", train.Rows(), test.Rows(), probit.Correct)
	}
	mean, variance := q.Moments()
	near(t, "rows", append(f.FirstTrain, f.FirstTest...), append(dense(train, 0), dense(test, 0)...), 1e-9) // ten digits
	near(t, "sums", f.Sums, sums, 1e-6)
	near(t, "mean", f.Mean, mean, 1e-5)
	near(t, "variance", f.Var, variance, 1e-5)
	near(t, "fit", []float64{f.ELBO, f.LogLik, f.LogLikEx}, []float64{info.Value, probit.LogLik, exact.LogLik}, 1e-6)
	near(t, "accuracy", []float64{f.Accuracy, f.AccuracyEx}, []float64{probit.Accuracy(), exact.Accuracy()}, 2.001/float64(test.Rows()))
}
