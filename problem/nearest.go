package problem

// DidYouMean returns a hint with the candidate that the word may have been
// meant for, or otherwise.
func DidYouMean(word string, candidates []string, otherwise string) string {
	if near := Nearest(word, candidates); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// Nearest returns the first of the candidates with the fewest edits between it
// and the word, by their keys ([Key]); "" if all are far.
func Nearest(word string, candidates []string) string {
	w := []rune(Key(word))
	best, limit := "", max(1, len(w)/3)+1
	for _, c := range candidates {
		if d := edits(w, []rune(Key(c)), limit); d < limit {
			best, limit = c, d
		}
	}
	return best
}

// edits returns the number of insertions, deletions, replacements and swaps of
// neighbours that turn a into b (optimal string alignment), or any number not
// below the limit if there are that many.
func edits(a, b []rune, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
