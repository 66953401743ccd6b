package graffl

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/methods/graffl/augment"
)

func TestAppliedSetIsRead(t *testing.T) {
	s := appliedSet{label: "died", drop: []string{"id", "stay"}, zeros: []string{"chol"}}
	got, err := s.parse(strings.NewReader("id,age,stay,chol,died,hr\n1,50,3,0,1,\n2,0,4,210,0,61.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float64{{50, math.NaN(), math.NaN()}, {0, 210, 61.5}}
	for i, row := range want {
		for j, v := range row {
			if g := got.rows[i][j]; g != v && !(math.IsNaN(g) && math.IsNaN(v)) {
				t.Errorf("row %d, column %d is %v, want %v", i, j, g, v)
			}
		}
	}
	if len(got.rows) != 2 || !got.labels[0] || got.labels[1] {
		t.Errorf("labels %v of %d rows", got.labels, len(got.rows))
	}
	for want, data := range map[string]string{
		"there is no column stay": "id,age,chol,died\n",
		`row 1: died is "2"`:      "id,stay,chol,died\n1,1,1,2\n",
		"row 1, column chol":      "id,stay,chol,died\n1,1,high,1\n",
		"wrong number of fields":  "id,stay,chol,died\n1,1,1\n",
		"EOF":                     "",
	} {
		if _, err := s.parse(strings.NewReader(data)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
	s.file = "set.gz"
	if _, err := s.read(t.TempDir()); err == nil || !strings.Contains(err.Error(), "-data") {
		t.Errorf("no data: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, s.file), []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.read(dir); err == nil || !strings.Contains(err.Error(), "set.gz") {
		t.Errorf("no gzip: %v", err)
	}
}

// simulated is rows of six features, of which half have the label true; its classes
// lie apart along all of them.
func simulated(n int, r *rand.Rand) (t table) {
	for i := range n {
		row := make([]float64, 6)
		for j := range row {
			row[j] = 50 + 10*r.NormFloat64()
			if i%2 == 0 {
				row[j] += 7
			}
		}
		t.rows, t.labels = append(t.rows, row), append(t.labels, i%2 == 0)
	}
	return t
}

func TestRowsAreDealt(t *testing.T) {
	all := simulated(1000, rand.New(rand.NewPCG(1, 0)))
	d, err := all.split(setting{sites: 4, aside: 0.3, share: 0.05}, rand.New(rand.NewPCG(2, 0)))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[*float64]int{}
	for _, part := range append([]table{d.held}, d.sites...) {
		for _, row := range part.rows {
			seen[&row[0]]++
		}
	}
	for _, n := range seen {
		if n != 1 {
			t.Fatal("a row was dealt twice")
		}
	}
	if scarce, other := d.held.count(); scarce != 150 || other != 150 {
		t.Errorf("%d + %d rows are held", scarce, other)
	}
	if len(d.all.rows) != 700 {
		t.Errorf("%d rows of 700 were not held", len(d.all.rows))
	}
	for k, site := range d.sites {
		scarce, other := site.count()
		want := 5 // of 88, 5 %
		if k == 0 {
			want = 88
		}
		if other < 87 || other > 88 || scarce != want {
			t.Errorf("site %d has %d + %d rows", k, scarce, other)
		}
	}

	d, err = all.split(setting{sites: 3, rows: 100, aside: 0.25}, rand.New(rand.NewPCG(2, 0)))
	if err != nil {
		t.Fatal(err)
	}
	for k, site := range d.sites {
		if scarce, other := site.count(); scarce != 50 || other != 50 {
			t.Errorf("site %d has %d + %d rows", k, scarce, other)
		}
	}
	if _, err := all.split(setting{sites: 3, rows: 300, aside: 0.25}, rand.New(rand.NewPCG(2, 0))); err == nil {
		t.Error("more rows were dealt than there are")
	}
}

// Every arm is measured, and what must be true of any data of this kind is: landmarks
// without noise find what the pooled codes would, and that is better than the few
// rows of a site. AUC of 600 held rows has a standard error of 0.015; the seeds are fixed.
func TestAppliedTableOnSimulatedRows(t *testing.T) {
	s := appliedSet{name: "simulated", hidden: []int{8}, splits: 2, settings: []setting{{"5 %", 3, 3, 0, 0.5, 0.05}}}
	got, err := s.measure(context.Background(), simulated(1200, rand.New(rand.NewPCG(1, 0))), 20_000)
	if err != nil {
		t.Fatal(err)
	}
	auc := func(arm string) float64 {
		cells := got.cells[arm]
		if len(cells) != 1 || len(cells[0].auc) != s.splits {
			t.Fatalf("arm %q is not in the table", arm)
		}
		sum := 0.0
		for _, m := range cells[0].auc {
			sum += m.mean() / float64(s.splits)
		}
		return sum
	}
	if a, b := auc("shared encoder: landmark"), auc("shared encoder: ceiling"); math.Abs(a-b) > 0.02 || a < auc("shared encoder: raw") {
		t.Errorf("AUC %v by landmarks, %v by pooled codes, %v raw", a, b, auc("shared encoder: raw"))
	}
	if a, b := auc("all rows, LR on features, C = 0.01"), auc("shared encoder: landmark"); a < b-0.02 {
		t.Errorf("AUC %v of all rows, %v of synthetic ones", a, b)
	}
	for _, arm := range []string{"own encoders: published", "own encoders: head of the first site", "shared encoder: published", "shared encoder: SMOTE",
		"shared encoder: landmark, if the verdict is to keep them", "shared encoder: landmark, ε = 10", "shared encoder: landmark, ε = 5", "shared encoder: landmark, ε = 1"} {
		if v := auc(arm); !(v >= 0 && v <= 1) {
			t.Errorf("%s: AUC %v", arm, v)
		}
	}
	judged := 0
	for _, n := range got.verdicts[0] {
		judged += n
	}
	if judged != 2*s.splits {
		t.Errorf("%d verdicts on two target sites in %d splits", judged, s.splits)
	}
	if text := got.String(); strings.Count(text, "\n| ") != 1+len(got.arms)+1 || strings.Contains(text, "NaN") {
		t.Errorf("the table is\n%s", text)
	}
	if got.verdicts[0][augment.Kept]+got.verdicts[0][augment.NotBetter] != judged {
		t.Errorf("verdicts %v", got.verdicts[0])
	}
}
