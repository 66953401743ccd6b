package pvi

import (
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"parley/internal/vectors"
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

const (
	adultFile  = "adult.csv.gz"
	maxAdult   = 32 << 20 // bytes, unpacked
	tolPrinted = 5.1e-9   // first rows, means and variances are printed to ten or eight digits
)

func verifyAdult(file []byte, list *vectors.List, open Opener) error {
	var f adultJSON
	if err := decode(file, &f); err != nil {
		return err
	}
	if !(f.Prior.Var > 0) {
		return fmt.Errorf("prior variance %v is not positive", f.Prior.Var)
	}
	if open == nil {
		return fmt.Errorf("this needs the data %s, which were not given", adultFile)
	}
	r, err := open(adultFile)
	if err != nil {
		return fmt.Errorf("this needs the data %s: %w", adultFile, err)
	}
	defer r.Close()
	table, err := readAdult(r)
	if err != nil {
		return fmt.Errorf("%s: %w", adultFile, err)
	}
	encoding, train, test, err := table.designs(func(row int) bool { return table.cells["split"][row] == "train" })
	if err != nil {
		return fmt.Errorf("%s: %w", adultFile, err)
	}
	list.Equal("features", f.Features, encoding.Features())
	list.Equal("n_train", f.Train, train.Rows())
	list.Equal("n_test", f.Test, test.Rows())
	if train.Rows() == 0 || test.Rows() == 0 {
		return fmt.Errorf("%s: %d rows to train on and %d to test", adultFile, train.Rows(), test.Rows())
	}
	list.Floats("first_train_row", f.FirstTrain, dense(train, 0), vectors.Tolerance{Rel: tolPrinted, Floor: 1})
	list.Floats("first_test_row", f.FirstTest, dense(test, 0), vectors.Tolerance{Rel: tolPrinted, Floor: 1})
	sums := make([]float64, train.Columns())
	for i := range train.Rows() {
		for j, x := range dense(train, i) {
			sums[j] += x
		}
	}
	list.Floats("column_sums_train", f.ColumnSums, sums, vectors.Tolerance{Rel: 1e-6, Floor: 1})

	prior := Isotropic(train.Columns(), f.Prior.Mean, f.Prior.Var)
	local := Local{Logistic{}, train, prior}
	q, info, err := local.Optimum(prior, Solve{})
	if err != nil {
		return err
	}
	list.Equal("elbo: converged", true, info.Converged)
	list.Float("elbo", f.ELBO, info.Value, vectors.Tolerance{Rel: 1e-6})
	mean, variance := q.Moments()
	list.Floats("mean", f.Mean, mean, vectors.Tolerance{Rel: 1e-5, Floor: 1})
	list.Floats("var", f.Var, variance, vectors.Tolerance{Rel: 1e-5})
	probit, err := PredictBinary(test, q, false)
	if err != nil {
		return err
	}
	exact, err := PredictBinary(test, q, true)
	if err != nil {
		return err
	}
	twoRows := vectors.Tolerance{Rel: 2.001 / float64(test.Rows()), Floor: 1}
	logLik := vectors.Tolerance{Rel: 1e-6, Floor: 1}
	list.Equal("test_correct: within 2", true, math.Abs(float64(f.Correct-probit.Correct)) <= 2)
	list.Float("test_accuracy_probit", f.Accuracy, probit.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_probit", f.LogLik, probit.LogLik, logLik)
	list.Float("test_accuracy_exact", f.AccuracyEx, exact.Accuracy(), twoRows)
	list.Float("test_mean_log_lik_exact", f.LogLikExact, exact.LogLik, logLik)
	return nil
}

func dense(d *Design, i int) []float64 {
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

// readAdult reads the gzipped table and checks that it has the columns.
func readAdult(r io.Reader) (*adultTable, error) {
	unpacked, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	records := csv.NewReader(io.LimitReader(unpacked, maxAdult))
	header, err := records.Read()
	if err != nil {
		return nil, err
	}
	t := &adultTable{cells: map[string][]string{}}
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			return nil, fmt.Errorf("%s is there twice", name)
		}
	}
	for _, name := range slices.Concat(adultNumbers, adultCategories, []string{"income", "split"}) {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("there is no column %q", name)
		}
	}
	for {
		record, err := records.Read()
		if err == io.EOF {
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		for i, name := range header {
			t.cells[name] = append(t.cells[name], record[i])
		}
		t.rows++
	}
}

// designs standardises numbers by the training rows, or by all rows if train is
// nil, as the vectors do, and takes all levels that occur anywhere.
func (t *adultTable) designs(train func(row int) bool) (*Encoding, *Design, *Design, error) {
	e := &Encoding{}
	cells := make([][]float64, t.rows)
	for _, name := range adultNumbers {
		values := make([]float64, t.rows)
		for i, text := range t.cells[name] {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil || !finite(x) {
				return nil, nil, nil, fmt.Errorf("row %d: %s is not a finite number", i+1, name)
			}
			values[i] = x
			cells[i] = append(cells[i], x)
		}
		e.Columns = append(e.Columns, standardised(name, values, train))
	}
	for _, name := range adultCategories {
		levels := slices.Compact(slices.Sorted(slices.Values(t.cells[name])))
		c := Column{Name: name, Levels: levels}
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
	outcome := Outcome{Column: "income", Levels: []string{"<=50K", ">50K"}}
	both := [2]*Design{NewDesign(e.Width()), NewDesign(e.Width())}
	var row Row
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
