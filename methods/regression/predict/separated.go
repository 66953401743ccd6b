package predict

import "math"

// Separated says whether all rows have one outcome whose value in a column is above 0, or with low below
// it: of classes that none has the event, or all have, and of counts that all are 0. With y of 0 or 1,
// Σ r + Σ v + Σ r² over rows is 2Σ(1 − p) of those with events, and −Σ r + Σ v + Σ r² is 2Σp of the
// others. It is not known where a row's weight is no number of people, which count in Σ r² as they do
// in the others.
func (s *Residuals) Separated(j int, low, counts bool) bool {
	if s.Sampled {
		return false
	}
	from, to := bin(0), bins
	if low {
		from, to = 0, from
	}
	net, variance, squares := 0.0, 0.0, 0.0
	for k := bins*j + from; k < bins*j+to; k++ {
		net, variance, squares = net+s.BinNet[k], variance+s.BinVariance[k], squares+s.BinSquares[k]
	}
	if !(variance > 0) {
		return false
	}
	if counts { // Σ y
		return net+variance < 0.5
	}
	none := allButRounding * (math.Abs(net) + variance + squares)
	return net+variance+squares <= none || variance+squares-net <= none
}

// allButRounding is what rounding may leave of sums that cancel.
const allButRounding = 1e-9
