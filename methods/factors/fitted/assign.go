package fitted

import "math"

// assign pairs rows with columns, each at most once, so that the sum of gains
// is largest (Kuhn 1955, Munkres 1957, by shortest augmenting paths in O(n³)).
// It returns each row's column, −1 where there are more rows than columns.
// Gains must not be negative.
func assign(gain [][]float64) []int {
	rows := len(gain)
	if rows == 0 {
		return nil
	}
	n := max(rows, len(gain[0]))
	cost := func(i, j int) float64 { // square, filled up with no gain
		if i < rows && j < len(gain[0]) {
			return -gain[i][j]
		}
		return 0
	}
	// Rows and columns are numbered from 1; column 0 holds the row to be placed.
	rowPrice, colPrice := make([]float64, n+1), make([]float64, n+1)
	rowOf, before := make([]int, n+1), make([]int, n+1)
	for i := 1; i <= n; i++ {
		rowOf[0] = i
		least, done := make([]float64, n+1), make([]bool, n+1)
		for j := range least {
			least[j] = math.Inf(1)
		}
		at := 0
		for rowOf[at] != 0 {
			done[at] = true
			row, step, next := rowOf[at], math.Inf(1), 0
			for j := 1; j <= n; j++ {
				if done[j] {
					continue
				}
				if c := cost(row-1, j-1) - rowPrice[row] - colPrice[j]; c < least[j] {
					least[j], before[j] = c, at
				}
				if least[j] < step {
					step, next = least[j], j
				}
			}
			for j := 0; j <= n; j++ {
				if done[j] {
					rowPrice[rowOf[j]] += step
					colPrice[j] -= step
				} else {
					least[j] -= step
				}
			}
			at = next
		}
		for at != 0 {
			rowOf[at] = rowOf[before[at]]
			at = before[at]
		}
	}
	column := make([]int, rows)
	for j := 1; j <= n; j++ {
		if i := rowOf[j] - 1; i < rows {
			if column[i] = j - 1; j-1 >= len(gain[0]) {
				column[i] = -1
			}
		}
	}
	return column
}
