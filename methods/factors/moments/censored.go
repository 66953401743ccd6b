package moments

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// censoredNormal is a normal law whose values beyond ±½ count as ±½, as those beyond a range count as its ends.
type censoredNormal struct{ mean, sd float64 }

const (
	bisections  = 18
	clampedMost = 100.0 // standard deviation from which on all values are at the ends, nearly
)

// clampedTo returns the law whose clamped values have this mean and variance. Values within ±½ have at most
// the variance ¼ − mean², which is that of values at the ends alone; where more is asked for, those are
// returned, nearly.
func clampedTo(mean, variance float64) censoredNormal {
	c := censoredNormal{mean, math.Sqrt(variance)}
	if c.mean+4*c.sd < 0.5 && c.mean-4*c.sd > -0.5 {
		return c
	}
	// Of laws whose clamped values have this mean, these vary the more the larger the standard deviation.
	least, most := math.Log(c.sd), math.Log(max(c.sd, clampedMost))
	for range bisections {
		middle := (least + most) / 2
		c = clampedAbout(mean, math.Exp(middle))
		if _, v := c.moments(); v < variance {
			least = middle
		} else {
			most = middle
		}
	}
	return c
}

// clampedAbout returns the law with this standard deviation whose clamped values have this mean.
func clampedAbout(mean, sd float64) censoredNormal {
	low, high := -0.5-5*sd, 0.5+5*sd
	for range bisections {
		c := censoredNormal{(low + high) / 2, sd}
		if m, _ := c.moments(); m < mean {
			low = c.mean
		} else {
			high = c.mean
		}
	}
	return censoredNormal{(low + high) / 2, sd}
}

// moments returns the mean and variance of clamped values.
func (c censoredNormal) moments() (mean, variance float64) {
	a, b := (-0.5-c.mean)/c.sd, (0.5-c.mean)/c.sd
	below, above := math.Erfc(-a/math.Sqrt2)/2, math.Erfc(b/math.Sqrt2)/2
	inside := 1 - below - above
	fa, fb := distuv.UnitNormal.Prob(a), distuv.UnitNormal.Prob(b)
	mean = (above-below)/2 + c.mean*inside + c.sd*(fa-fb)
	square := (above+below)/4 + c.mean*c.mean*inside + 2*c.mean*c.sd*(fa-fb) + c.sd*c.sd*(inside+a*fa-b*fb)
	return mean, square - mean*mean
}

// at returns the clamped value that a standard normal one becomes.
func (c censoredNormal) at(z float64) float64 { return max(-0.5, min(0.5, c.mean+c.sd*z)) }
