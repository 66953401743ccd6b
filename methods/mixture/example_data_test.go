package mixture_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the data of examples/mixture")

// exampleMeans are the modes of section 4.2 of the paper, one for each site of
// examples/mixture; every covariance is the identity.
var exampleMeans = []struct {
	site string
	mean [2]float64
}{{"west", [2]float64{-9, 3}}, {"south", [2]float64{0, -9}}, {"east", [2]float64{8, 3}}}

// The data of examples/mixture are drawn, by this test with -update.
func TestExampleDataAreWhatTheirSeedDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	for _, s := range exampleMeans {
		var subjects, rows bytes.Buffer
		fmt.Fprintln(&subjects, "id")
		fmt.Fprintln(&rows, "id,x,y")
		for i := range 300 {
			fmt.Fprintf(&subjects, "%s%03d\n", s.site, i+1)
			fmt.Fprintf(&rows, "%s%03d,%.4f,%.4f\n", s.site, i+1, s.mean[0]+r.NormFloat64(), s.mean[1]+r.NormFloat64())
		}
		for name, want := range map[string][]byte{"subjects.csv": subjects.Bytes(), "view_point.csv": rows.Bytes()} {
			path := filepath.Join("..", "..", "examples", "mixture", "data", s.site, name)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, want, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what the seed draws (%v): run this test with -update", path, err)
			}
		}
	}
}
