package graffl

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley/papers/graffl/scarce"
)

// smoted returns SMOTE: extra rows, each at a uniformly drawn place between a random row
// and one of its k nearest others in Euclidean distance (Chawla, Bowyer, Hall
// and Kegelmeyer, JAIR 16, 2002; they use k = 5). With fewer than k others, all
// of them count; a row that is alone is repeated. Rows must be as long as one
// another. Neither rows to draw from nor k may be lacking.
func smoted(rows [][]float64, extra, k int, rng *rand.Rand) ([][]float64, error) {
	if k < 1 {
		return nil, fmt.Errorf("smote: %d neighbours: want at least one", k)
	}
	if len(rows) < 2 {
		return scarce.Oversample(rows, extra, rng)
	}
	near := make([][]int, len(rows)) // neighbours of the rows that were drawn
	out := make([][]float64, 0, max(extra, 0))
	for range extra {
		i := rng.IntN(len(rows))
		if near[i] == nil {
			near[i] = neighbours(rows, i, k)
		}
		j, u := near[i][rng.IntN(len(near[i]))], rng.Float64()
		row := make([]float64, len(rows[i]))
		for c, v := range rows[i] {
			row[c] = v + u*(rows[j][c]-v)
		}
		out = append(out, row)
	}
	return out, nil
}

// neighbours returns the k rows nearest to row i, itself left out; of equal
// distances the earlier rows.
func neighbours(rows [][]float64, i, k int) []int {
	distance := make([]float64, len(rows))
	var others []int
	for j, r := range rows {
		if j == i {
			continue
		}
		others = append(others, j)
		for c, v := range r {
			distance[j] += (v - rows[i][c]) * (v - rows[i][c])
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(distance[a], distance[b]) })
	return others[:min(k, len(others))]
}
