//go:build long

package quoted_test

import (
	"testing"

	"parley/papers/experiment"
	"parley/papers/quoted"
)

// A quick run of every experiment ends with tables that have rows.
func TestExperimentsRun(t *testing.T) {
	for _, x := range quoted.Experiments() {
		t.Run(x.Name, func(t *testing.T) {
			t.Parallel()
			if x.Paper != quoted.Paper.Name {
				t.Errorf("it is on the page of %s", x.Paper)
			}
			r, err := experiment.Run(t.Context(), experiment.Config{Experiment: x, Quick: true, Dir: t.TempDir(),
				Workers: 1, Data: experiment.Data{Clone: "../.."}})
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Tables) == 0 {
				t.Error("there are no tables")
			}
			for _, table := range r.Tables {
				if table.Len() == 0 {
					t.Errorf("table %s has no rows", table.ID)
				}
			}
		})
	}
}
