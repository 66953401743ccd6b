package verify

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/internal/vectors"
	"parley/methods/regression/glm"
)

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

// Adult's columns, in the order of the design matrix.
var (
	adultNumbers    = []string{"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
	adultCategories = []string{"workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "native-country"}
)

const maxAdult = 32 << 20 // bytes of a table, unpacked

// tolPrinted is for rows, which the file has to ten digits.
var tolPrinted = vectors.Tolerance{Rel: 1e-9, Floor: 1}

func (f *adultJSON) verify(list *vectors.List, open vectors.Opener) error {
	table, err := openAdult(open)
	if err != nil {
		return err
	}
	fit, err := fitAdult(table, f.Prior.Mean, f.Prior.Var)
	if err != nil {
		return fmt.Errorf("the Adult data: %w", err)
	}
	f.compare(list, fit)
	return nil
}

// adultFit is central inference on the source's own training rows.
type adultFit struct {
	features      []string
	train, test   *glm.Design
	q             glm.Gaussian
	info          glm.Info
	probit, exact *glm.Predictive
}

func fitAdult(table *adultTable, priorMean, priorVar float64) (*adultFit, error) {
	encoding, train, test, err := table.designs(func(row int) bool { return table.cells["split"][row] == "train" })
	if err != nil {
		return nil, err
	}
	f := &adultFit{features: encoding.Features(), train: train, test: test}
	if f.train.Rows() == 0 || f.test.Rows() == 0 {
		return nil, fmt.Errorf("%d rows to train on and %d to test", f.train.Rows(), f.test.Rows())
	}
	local := glm.Local{Likelihood: glm.Logistic{}, Data: f.train, Cavity: glm.Isotropic(f.train.Columns(), priorMean, priorVar)}
	if f.q, f.info, err = local.Optimum(local.Cavity, glm.Solve{}); err != nil {
		return nil, err
	}
	if f.probit, err = glm.PredictBinary(f.test, f.q, false); err != nil {
		return nil, err
	}
	f.exact, err = glm.PredictBinary(f.test, f.q, true)
	return f, err
}

func (f *adultJSON) compare(list *vectors.List, fit *adultFit) {
	list.Equal("features", f.Features, fit.features)
	list.Equal("n_train", f.Train, fit.train.Rows())
	list.Equal("n_test", f.Test, fit.test.Rows())
	list.Floats("first_train_row", f.FirstTrain, dense(fit.train, 0), tolPrinted)
	list.Floats("first_test_row", f.FirstTest, dense(fit.test, 0), tolPrinted)
	sums := make([]float64, fit.train.Columns())
	for i := range fit.train.Rows() {
		r := fit.train.Row(i)
		for k, j := range r.Index {
			sums[j] += r.Value[k]
		}
	}
	list.Floats("column_sums_train", f.ColumnSums, sums, tolOptimum)
	list.Equal("elbo: converged", true, fit.info.Converged)
	list.Float("elbo", f.ELBO, fit.info.Value, vectors.Tolerance{Rel: 1e-6})
	mean, variance := fit.q.Moments()
	list.Floats("mean", f.Mean, mean, tolFixedPoint)
	list.Floats("var", f.Var, variance, vectors.Tolerance{Rel: 1e-5})
	twoRows := vectors.Tolerance{Rel: 2.001 / float64(fit.test.Rows()), Floor: 1}
	list.Float("test_correct", float64(f.Correct), float64(fit.probit.Correct), vectors.Tolerance{Rel: 2.001 / float64(max(f.Correct, 1)), Floor: 1})
	list.Float("test_accuracy_probit", f.Accuracy, fit.probit.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_probit", f.LogLik, fit.probit.LogLik, tolOptimum)
	list.Float("test_accuracy_exact", f.AccuracyEx, fit.exact.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_exact", f.LogLikExact, fit.exact.LogLik, tolOptimum)
}

func dense(d *glm.Design, i int) []float64 {
	x := make([]float64, d.Columns())
	r := d.Row(i)
	for k, j := range r.Index {
		x[j] = r.Value[k]
	}
	return x
}

// adultTable is the Adult data by column.
type adultTable struct {
	rows  int
	cells map[string][]string
}

// openAdult finds the data in UCI's form, one table, or in that of the income
// example, where the source's split is the column uci.
func openAdult(open vectors.Opener) (*adultTable, error) {
	const need = "this needs the Adult data, adult.csv.gz"
	if open == nil {
		return nil, fmt.Errorf("%s, which were not given", need)
	}
	t := &adultTable{cells: map[string][]string{}}
	const one = "adult.csv.gz"
	first, errFirst := open(one)
	if errFirst == nil {
		defer first.Close()
		if err := t.read(first); err != nil {
			return nil, fmt.Errorf("%s: %w", one, err)
		}
	} else {
		for _, name := range []string{"view_person.csv.gz", "subjects.csv.gz"} {
			r, err := open(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", need, errFirst)
			}
			defer r.Close()
			if err := t.read(r); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		t.cells["split"] = t.cells["uci"]
	}
	for _, name := range slices.Concat(adultNumbers, adultCategories, []string{"income", "split"}) {
		if len(t.cells[name]) != t.rows {
			return nil, fmt.Errorf("the Adult data have no column %q", name)
		}
	}
	return t, nil
}

// read reads a gzipped table with a header. What it shares with one before, it repeats.
func (t *adultTable) read(r io.Reader) error {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	records, err := csv.NewReader(io.LimitReader(unpacked, maxAdult)).ReadAll()
	if err != nil {
		return err
	}
	if len(records) < 2 || t.rows > 0 && t.rows != len(records)-1 {
		return fmt.Errorf("%d lines, and %d rows were read before", len(records), t.rows)
	}
	t.rows = len(records) - 1
	for i, column := range records[0] {
		cells := make([]string, t.rows)
		for k, record := range records[1:] {
			cells[k] = record[i]
		}
		t.cells[column] = cells
	}
	return nil
}

// designs standardises numbers by the training rows, or by all rows if train is
// nil, as the vectors do, and takes all levels that occur anywhere.
func (t *adultTable) designs(train func(row int) bool) (*glm.Encoding, *glm.Design, *glm.Design, error) {
	e := &glm.Encoding{}
	cells := make([][]float64, t.rows)
	for _, name := range adultNumbers {
		values := make([]float64, t.rows)
		for i, text := range t.cells[name] {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !glm.Finite(x) {
				return nil, nil, nil, fmt.Errorf("row %d: %s is not a finite number", i+1, name)
			}
			values[i] = x
			cells[i] = append(cells[i], x)
		}
		e.Columns = append(e.Columns, standardised(name, values, train))
	}
	for _, name := range adultCategories {
		levels := slices.Compact(slices.Sorted(slices.Values(t.cells[name])))
		c := glm.Column{Name: name, Levels: levels}
		code := make(map[string]float64, len(levels))
		for _, l := range levels {
			code[l] = c.Code(l)
		}
		for i, text := range t.cells[name] {
			cells[i] = append(cells[i], code[text])
		}
		e.Columns = append(e.Columns, c)
	}
	if err := e.Check(); err != nil {
		return nil, nil, nil, err
	}
	outcome := glm.Outcome{Column: "income", Levels: []string{"<=50K", ">50K"}}
	both := [2]*glm.Design{glm.NewDesign(e.Width()), glm.NewDesign(e.Width())}
	var row glm.Row
	for i := range t.rows {
		y, err := outcome.Value(1, t.cells["income"][i])
		if err == nil {
			err = e.Encode(cells[i], &row)
		}
		if err != nil {
			return nil, nil, nil, fmt.Errorf("row %d: %w", i+1, err)
		}
		part := both[1]
		if train(i) {
			part = both[0]
		}
		if err := part.Append(row, y); err != nil {
			return nil, nil, nil, err
		}
	}
	return e, both[0], both[1], nil
}

// standardised declares a number by its mean and its deviation (divisor n) over
// some rows.
func standardised(name string, values []float64, of func(row int) bool) glm.Column {
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
	return glm.Column{Name: name, Centre: mean, Scale: math.Sqrt(square / n)}
}
