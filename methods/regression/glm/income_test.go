package glm

import (
	"compress/gzip"
	"context"
	"encoding/csv"
	"math"
	"os"
	"regexp"
	"slices"
	"sync"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
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

type adultJSON struct {
	Schema   string   `json:"schema"`
	Features []string `json:"features"`
	Train    int      `json:"n_train"`
	Test     int      `json:"n_test"`
	Prior    struct {
		Mean float64 `json:"mean"`
		Var  float64 `json:"var"`
	} `json:"prior"`
	FirstTrain  []float64 `json:"first_train_row"`
	FirstTest   []float64 `json:"first_test_row"`
	ColumnSums  []float64 `json:"column_sums_train"`
	ELBO        float64   `json:"elbo"`
	Mean        []float64 `json:"mean"`
	Var         []float64 `json:"var"`
	Accuracy    float64   `json:"test_accuracy_probit"`
	Correct     int       `json:"test_correct"`
	LogLik      float64   `json:"test_mean_log_lik_probit"`
	AccuracyEx  float64   `json:"test_accuracy_exact"`
	LogLikExact float64   `json:"test_mean_log_lik_exact"`
}

// adultFit is central inference on the source's own training rows.
type adultFit struct {
	features      []string
	train, test   *Design
	q             Gaussian
	info          Info
	probit, exact *Predictive
}

var adultFitted = sync.OnceValues(func() (*adultFit, error) {
	e, parts, err := divided("uci", "train")
	if err != nil {
		return nil, err
	}
	f := &adultFit{features: e.Features(), train: parts["train"], test: parts["test"]}
	local := Local{Likelihood: Logistic{}, Data: f.train, Cavity: Isotropic(f.train.Columns(), 0, 1)}
	if f.q, f.info, err = local.Optimum(local.Cavity, Solve{}); err != nil {
		return nil, err
	}
	if f.probit, err = PredictBinary(f.test, f.q, false); err != nil {
		return nil, err
	}
	f.exact, err = PredictBinary(f.test, f.q, true)
	return f, err
})

func (f *adultJSON) verify(list *vectors.List) error {
	fit, err := adultFitted()
	if err != nil {
		return err
	}
	list.Equal("features", f.Features, fit.features)
	list.Equal("n_train", f.Train, fit.train.Rows())
	list.Equal("n_test", f.Test, fit.test.Rows())
	printed := vectors.Tolerance{Rel: 1e-9, Floor: 1} // ten digits
	list.Floats("first_train_row", f.FirstTrain, dense(fit.train, 0), printed)
	list.Floats("first_test_row", f.FirstTest, dense(fit.test, 0), printed)
	sums := make([]float64, fit.train.Columns())
	for i := range fit.train.Rows() {
		r := fit.train.Row(i)
		for k, j := range r.Index {
			sums[j] += r.Value[k]
		}
	}
	list.Floats("column_sums_train", f.ColumnSums, sums, vectors.Tolerance{Rel: 1e-6, Floor: 1})
	list.Equal("elbo: converged", true, fit.info.Converged)
	list.Float("elbo", f.ELBO, fit.info.Value, vectors.Tolerance{Rel: 1e-6})
	mean, variance := fit.q.Moments()
	list.Floats("mean", f.Mean, mean, vectors.Tolerance{Rel: 1e-5, Floor: 1})
	list.Floats("var", f.Var, variance, vectors.Tolerance{Rel: 1e-5})
	twoRows := vectors.Tolerance{Rel: 2.001 / float64(fit.test.Rows()), Floor: 1}
	list.Float("test_correct", float64(f.Correct), float64(fit.probit.Correct), vectors.Tolerance{Rel: 2.001 / float64(max(f.Correct, 1)), Floor: 1})
	list.Float("test_accuracy_probit", f.Accuracy, fit.probit.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_probit", f.LogLik, fit.probit.LogLik, vectors.Tolerance{Rel: 1e-6, Floor: 1})
	list.Float("test_accuracy_exact", f.AccuracyEx, fit.exact.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_exact", f.LogLikExact, fit.exact.LogLik, vectors.Tolerance{Rel: 1e-6, Floor: 1})
	return nil
}

// Numbers of an independent implementation agree, and changed ones do not. Within two rows
// numbers of rows may differ, and the prior is what is fitted.
func TestVectorsOfTheAdultData(t *testing.T) {
	file, err := os.ReadFile("testdata/adult_exact.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(file []byte) ([]vectors.Check, error) {
		return vectors.Run(file, map[string]func([]byte, *vectors.List) error{"pvi/adult-exact/1": vectors.Format((*adultJSON).verify)})
	}
	checks, err := check(file)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Agree(t, checks, 12)
	testkit.Changed(t, file, regexp.MustCompile(`^\.test_correct|^\.prior\.(mean|var)$`), 30, check)
}
