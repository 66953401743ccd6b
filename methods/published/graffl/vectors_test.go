package graffl

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
	"parley/methods/mixture/gmm"
)

// verifyVectors holds the numerics to one file of numbers from an independent implementation.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"graffl/discrepancy/1": vectors.Format((*discrepancyFile).verify),
		"graffl/selection/1":   verifySelection,
		"graffl/setdistance/1": vectors.Format((*setDistanceFile).verify),
	})
}

// unused are whole rounds in a number of proposals, where plans state rounds.
var unused = regexp.MustCompile(`^\.schedule`)

func TestVectorsAgree(t *testing.T) {
	for name, file := range testkit.Files(t, "testdata/*.json", 3) {
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
		for k := range got {
			got[k] = gmm.SquaredDistance(x[k*d:][:d], g[k*d:][:d])
		}
		list.Floats(fmt.Sprintf("cases[%d].squared_distance", i), c.Squared, got, tolNumber)
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

// setDistanceFile has discrepancies over some sites.
type setDistanceFile struct {
	Schema    string        `json:"schema"`
	Sites     [][][]float64 `json:"sites"`
	Generated [][]float64   `json:"generated"`
	Bandwidth float64       `json:"bandwidth"`
	Kernel    string        `json:"kernel"`
	Energy    struct {
		Definition string    `json:"definition"`
		Cross      []float64 `json:"cross_mean_by_site"`
		Self       float64   `json:"self_generated"`
		Pooled     float64   `json:"pooled"`
		Sum        float64   `json:"sum_over_sites_weighted_n_j"`
		Difference float64   `json:"difference_does_not_depend_on_generated"`
	} `json:"energy"`
	MMD struct {
		Pooled float64   `json:"pooled"`
		Cross  []float64 `json:"cross_mean_by_site"`
	} `json:"mmd2_v"`
}

func (f *setDistanceFile) verify(list *vectors.List) error {
	d, g := len(f.Generated[0]), slices.Concat(f.Generated...)
	energy, mmd := gmm.Discrepancy{Kind: gmm.Energy}, gmm.Discrepancy{Kind: gmm.MMD, Bandwidth: f.Bandwidth}
	pooled := slices.Concat(slices.Concat(f.Sites...)...)
	var counts []int
	var crossEnergy, crossMMD []float64
	bySite := 0.0
	for _, s := range f.Sites {
		rows := slices.Concat(s...)
		counts = append(counts, len(s))
		crossEnergy, crossMMD = append(crossEnergy, energy.Cross(g, rows, d)), append(crossMMD, mmd.Cross(g, rows, d))
		bySite += float64(len(rows)) / float64(len(pooled)) * energy.Between(g, rows, d)
	}
	within, between := energy.Cross(g, g, d), energy.Between(g, pooled, d)
	list.Floats("energy.cross_mean_by_site", f.Energy.Cross, crossEnergy, tolNumber)
	list.Float("energy.self_generated", f.Energy.Self, within, tolNumber)
	list.Float("energy.pooled", f.Energy.Pooled, between, tolNumber)
	list.Float("energy.pooled (from sites)", f.Energy.Pooled, energy.Over(within, crossEnergy, counts)-energy.Cross(pooled, pooled, d), tolNumber)
	list.Float("energy.sum_over_sites_weighted_n_j", f.Energy.Sum, bySite, tolNumber)
	list.Float("energy.difference_does_not_depend_on_generated", f.Energy.Difference, bySite-between, tolNumber)
	list.Floats("mmd2_v.cross_mean_by_site", f.MMD.Cross, crossMMD, tolNumber)
	list.Float("mmd2_v.pooled", f.MMD.Pooled, mmd.Between(g, pooled, d), tolNumber)
	return nil
}

// tolNumber keeps entries near zero from asking for more digits than float64 has.
var tolNumber = vectors.Tolerance{Rel: 1e-9, Floor: 1e-3}
