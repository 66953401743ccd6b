package privacy

// Numbers is how many numbers a release of the request holds at most: its
// contents, in which a method may or may not have counted the noised sums.
func (r Request) Numbers() int {
	contents, sums := 0, 0
	for _, c := range r.Contents {
		contents = add(contents, max(c.Values, 0))
	}
	for _, s := range r.Sums {
		if !s.Kept {
			sums = add(sums, multiply(s.Entries(), s.Mechanism.Count))
		}
	}
	return max(contents, sums)
}

// Numbers is how many numbers all releases of a list hold at most.
func Numbers(list []Listed) int {
	n := 0
	for _, l := range list {
		n = add(n, multiply(l.Request.Numbers(), l.Times))
	}
	return n
}
