package exact

import (
	"math"

	"parley/methods/regression/glm"
)

// beginning is where the first step for counts takes their log-likelihood for a parabola: not
// at rates of 1, from where Newton's step goes far beyond large counts and comes back by 1 in
// each step, but for each row at about its own count, as iteratively reweighted least squares
// do (McCullagh and Nelder, Generalized Linear Models, 1989, section 2.5). With exposure e, the
// exponential of the offset, a row's rate is the posterior mean e (y + ½)/(e + ½/ρ) under the
// gamma prior with shape ½ whose mean is ρ, the counts of the site's rows per exposure.
type beginning struct{ rate float64 }

// beginningOf counts the rows of a design, and half a count more so that none is no rate of 0.
func beginningOf(d *glm.Design) *beginning {
	counts, exposure := 0.5, 0.0
	for i := range d.Rows() {
		r := d.Row(i)
		counts += r.Weight * d.Outcome(i)
		exposure += r.Weight * math.Exp(r.Offset)
	}
	return &beginning{counts / exposure}
}

// slopes are the first and the negative second derivative of a row's parabola by its
// activation, at the activation a.
func (b *beginning) slopes(y, offset, a float64) (first, second float64) {
	e := math.Exp(offset)
	mean := e * (y + 0.5) / (e + 0.5/b.rate)
	return y - mean + mean*(math.Log(mean)-a), mean
}

// commonest is where the first step for several classes takes their log-likelihood for a parabola:
// not where all are as likely, from where Newton's step comes nearer to a rare class by 1 in each step,
// but where each is as likely as it is common, Dirichlet's prior of ½ for each class having been
// counted with the site's rows.
type commonest struct{ shares []float64 }

func commonestOf(d *glm.Design, classes int) *commonest {
	b, sum := &commonest{make([]float64, classes)}, float64(classes)/2
	for i := range d.Rows() {
		w := d.Row(i).Weight
		b.shares[int(d.Outcome(i))] += w
		sum += w
	}
	for k := range b.shares {
		b.shares[k] = (b.shares[k] + 0.5) / sum
	}
	return b
}

// slopes sets the probabilities that the second derivatives are made of, and the first derivatives at
// the activations a of a row with outcome y.
func (b *commonest) slopes(y int, a, alpha, first []float64) {
	mean := 0.0
	for k, p := range b.shares {
		mean += p * (math.Log(p) - a[k])
	}
	for k, p := range b.shares {
		alpha[k], first[k] = p, p*(math.Log(p)-a[k]-mean)-p
	}
	first[y]++
}
