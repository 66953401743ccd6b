package graffl

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
)

// verifyVectors holds the numerics to one file of numbers from an independent implementation.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"graffl/discrepancy/1": vectors.Format((*discrepancyFile).verify),
		"graffl/selection/1":   verifySelection,
	})
}

// unused are whole rounds in a number of proposals, where plans state rounds.
var unused = regexp.MustCompile(`^\.schedule`)

func TestVectorsAgree(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/*.json", 2) {
		t.Run(name, func(t *testing.T) {
			testkit.Agree(t, testkit.Get(verifyVectors(file))(t), 3)
			testkit.Changed(t, file, unused, 60, verifyVectors)
		})
	}
}

type discrepancyFile struct {
	Schema string `json:"schema"`
	Cases  []struct {
		Encoded   [][]float64 `json:"x_enc"`
		Generated [][]float64 `json:"x_gen"`
		Squared   []float64   `json:"squared_distance"`
	} `json:"cases"`
}

func (f *discrepancyFile) verify(list *vectors.List) error {
	for i, c := range f.Cases {
		d, x, g := len(c.Encoded[0]), slices.Concat(c.Encoded...), slices.Concat(c.Generated...)
		if len(x) != len(g) {
			return fmt.Errorf("case %d pairs %d rows with %d", i, len(c.Encoded), len(c.Generated))
		}
		got := make([]float64, len(c.Encoded))
		squaredDistances(got, x, g, d)
		list.Floats(fmt.Sprintf("cases[%d].squared_distance", i), c.Squared, got, vectors.Tolerance{Rel: 1e-9, Floor: 1e-3})
	}
	return nil
}

func verifySelection(file []byte, list *vectors.List) error {
	type accepted struct {
		Iteration int     `json:"iteration"`
		Site      int     `json:"site"`
		Row       int     `json:"row"`
		Distance  float64 `json:"distance"`
	}
	var f struct {
		Schema     string        `json:"schema"`
		Rows       []int         `json:"n_j"`
		Iterations int           `json:"iterations"`
		Distances  [][][]float64 `json:"distances"`
		TieRule    string        `json:"tie_rule"`
		Cases      []struct {
			L        int        `json:"L"`
			Accepted []accepted `json:"accepted"`
			Largest  float64    `json:"eps_largest_accepted"`
			Smallest *float64   `json:"eps_smallest_rejected"`
		} `json:"cases"`
		Schedule []any `json:"schedule"`
	}
	if err := vectors.Decode(file, &f); err != nil {
		return err
	}
	list.Equal("iterations", f.Iterations, len(f.Distances))
	for t, sites := range f.Distances {
		counts := make([]int, len(sites))
		for j, rows := range sites {
			counts[j] = len(rows)
		}
		list.Equal(fmt.Sprintf("n_j[%d]", t), f.Rows, counts)
	}
	for i, c := range f.Cases {
		entry := fmt.Sprintf("cases[%d]", i)
		h, err := newAcceptance(c.L)
		if err != nil {
			return fmt.Errorf("%s: %w", entry, err)
		}
		for t, sites := range f.Distances {
			for j, rows := range sites {
				for k, v := range rows {
					if err := h.Offer(answer{Iteration: t, Site: j, Row: k, Distance: v}); err != nil {
						return err
					}
				}
			}
		}
		got := h.Sorted()
		list.Equal(entry+".accepted", len(c.Accepted), len(got))
		for k, a := range got[:min(len(got), len(c.Accepted))] {
			list.Equal(fmt.Sprintf("%s.accepted[%d]", entry, k), answer(c.Accepted[k]), a)
		}
		largest, smallest := h.Thresholds()
		list.Float(entry+".eps_largest_accepted", c.Largest, largest, vectors.Tolerance{})
		if c.Smallest == nil {
			list.Equal(entry+".eps_smallest_rejected", math.Inf(1), smallest)
		} else {
			list.Float(entry+".eps_smallest_rejected", *c.Smallest, smallest, vectors.Tolerance{})
		}
	}
	return nil
}
