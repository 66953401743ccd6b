package noised

// A site's budget in squares of signal over noise, which add up over Gaussian releases:
// what is spent on each sum. Rounds of gradients have the rest, the first few, which only
// have to find the way, half as much as the others.
const (
	shareTotals   = 0.12
	shareProducts = 0.06
	rounds        = 20
)

// shareOf is the share of round k, from 0.
func shareOf(k int) float64 {
	const each = (1 - shareTotals - shareProducts) / (rounds - burn/2)
	if k < burn {
		return each / 2
	}
	return each
}
