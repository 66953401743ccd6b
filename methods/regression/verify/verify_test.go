package verify_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"

	"parley/dataset"
	"parley/engine/local"
	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/method"
	"parley/methods/regression"
	"parley/methods/regression/verify"
	"parley/study"
)

func vectorFiles(t testing.TB) map[string][]byte {
	t.Helper()
	return testkit.Files(t, "../testdata/pvi/*.json", 8)
}

// inMemory is the engine.
func inMemory(p *study.Plan, rows map[string]dataset.Source) (*method.Result, error) {
	out, err := local.Run(context.Background(), local.Config{Plan: p, Methods: method.Registry{regression.Method{}}, Data: rows})
	if err != nil {
		return nil, err
	}
	return out.Result, nil
}

var (
	check = regression.Method{}.Verify
	means = method.Means{Run: inMemory}
)

// verifyOnce runs a file as the program does, but compares adult-exact with one fit.
func verifyOnce(name string, file []byte) ([]vectors.Check, error) {
	if name == "adult_exact.json" {
		return verify.CompareAdult(file)
	}
	return check(file, means)
}

func TestPublishedVectorsAgree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := verifyOnce(name, file)
			if err != nil {
				t.Fatal(err)
			}
			testkit.Agree(t, checks, 12)
		})
	}
}

// unused are numbers on which nothing else depends: orders at which no minimum is
// attained, and one that has a tolerance of two rows. The prior of adult-exact is what
// is fitted, not compared.
var unused = regexp.MustCompile(`^\.dense_orders|^\.test_correct|^\.prior\.(mean|var)$`)

func TestChangedVectorsDisagree(t *testing.T) {
	for name, file := range vectorFiles(t) {
		t.Run(name, func(t *testing.T) {
			sample := 30
			if name == "accounting.json" || name == "pvi_exact.json" {
				sample = 10 // a tenth of a second each
			}
			testkit.Changed(t, file, unused, sample, func(file []byte) ([]vectors.Check, error) { return verifyOnce(name, file) })
		})
	}
}

// Other data than the vectors' are read and found to be other data.
func TestVectorsOfOtherDataDisagree(t *testing.T) {
	checks, err := check(vectorFiles(t)["adult_exact.json"], method.Means{Open: func(name string) (io.ReadCloser, error) {
		if name == "adult.csv.gz" {
			return nil, errors.New("there is only the example")
		}
		text := verify.AdultHeader + verify.TwoPeople
		return io.NopCloser(bytes.NewReader(verify.Zipped(strings.Replace(text, "split", "uci", 1)))), nil
	}})
	if err != nil || len(checks) < 12 || vectors.List(checks).OK() {
		t.Errorf("%d entries, %v", len(checks), err)
	}
}

func TestVectorsThatCannotBeRun(t *testing.T) {
	adult := vectorFiles(t)["adult_exact.json"]
	table := func(text string) vectors.Opener {
		return func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(verify.Zipped(text))), nil }
	}
	for _, c := range []struct {
		want, file string
		open       vectors.Opener
	}{
		{"unknown schema", `{"schema": "pvi/clipping/2"}`, nil},
		{"unknown schema", `{}`, nil},
		{"test vectors", `[]`, nil},
		{"test vectors", `{"schema": "pvi/clipping/1"} {}`, nil},
		{"unknown field", `{"schema": "pvi/clipping/1", "extra": 1}`, nil},
		{"0 rows and 0 outcomes", `{"schema": "pvi/pvi-exact/1"}`, nil},
		{"row 0 belongs to client -1", `{"schema": "pvi/pvi-exact/1", "X": [[1]], "t": [1], "owner": [-1], "prior": {"mean": [0], "var": [1]}}`, nil},
		{"unknown schedule", `{"schema": "pvi/pvi-exact/1", "X": [[1]], "t": [1], "owner": [0], "prior": {"mean": [0], "var": [1]}, "runs": [{"schedule": "x"}]}`, nil},
		{"want an even number", `{"schema": "pvi/client-split/1", "cases": [{"M": 3}]}`, nil},
		{"gradients of 2 and 1", `{"schema": "pvi/clipping/1", "cases": [{"C": 1, "g": [[1, 2], [1]]}]}`, nil},
		{"q_old: natural parameters of 1 and 2", `{"schema": "pvi/natural-parameters/1", "cases": [{"q_old": {"mean": [0], "var": [1], "eta": [0], "lam": [1, 1]}, "q_new": {"mean": [0], "var": [1]}, "t_old": {"eta": [0], "lam": [1]}}]}`, nil},
		{"no weights", `{"schema": "pvi/natural-parameters/1", "cases": [{}]}`, nil},
		{"cavity: natural parameters", `{"schema": "pvi/adult-exact/1"}`, table(verify.AdultHeader + verify.TwoPeople)},
		{"which were not given", string(adult), nil},
		{"needs the Adult data, adult.csv.gz: lost", string(adult), func(string) (io.ReadCloser, error) { return nil, errors.New("lost") }},
		{"unexpected EOF", string(adult), func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("age")), nil }},
		{`no column "fnlwgt"`, string(adult), table("age,x\n1,2\n")},
		{"wrong number of fields", string(adult), table(verify.AdultHeader + "1\n")},
		{"row 1: age is not", string(adult), table(verify.AdultHeader + "x" + strings.Repeat(",1", 15) + "\n")},
		{"1 lines, and 0 rows", string(adult), table(verify.AdultHeader)},
		{"3 rows to train on and 0 to test", string(adult), table(verify.AdultHeader + strings.ReplaceAll(verify.TwoPeople, "test", "train"))},
		{`"1" is not one of`, string(adult), table(verify.AdultHeader + strings.Repeat("1,", 15) + "train\n" + strings.Repeat("2,", 15) + "train\n")},
	} {
		if _, err := check([]byte(c.file), method.Means{Open: c.open, Run: inMemory}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80s: %v, want %q", c.file, err, c.want)
		}
	}
}

// Whatever a file holds: an error or disagreement, never a panic.
func FuzzVerifyVectors(f *testing.F) {
	for name, file := range vectorFiles(f) {
		if name != "adult_exact.json" {
			f.Add(file)
		}
	}
	f.Add([]byte(`{"schema": "pvi/pvi-exact/1", "X": [[1]], "t": [1], "owner": [0], "prior": {"mean": [0], "var": [1]}}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		if len(file) > 30000 || bytes.Count(file, []byte("[")) > 300 {
			return
		}
		check(file, means)
	})
}
