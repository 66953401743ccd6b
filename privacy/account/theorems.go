package account

import (
	"fmt"
	"math"
)

// The composition theorems below know nothing of a mechanism but the (ε, δ) of
// each release. They are here to compare with: on the compositions that a
// study makes they lie far above Epsilon.

// Releases is a number of releases that are each (ε, δ)-differentially private.
type Releases struct {
	Each  Budget // Epsilon ≥ 0, Delta in [0, 1)
	Count int    // ≥ 1
}

func checkReleases(rs []Releases) error {
	for i, r := range rs {
		if !(r.Each.Epsilon >= 0) || !(r.Each.Delta >= 0 && r.Each.Delta < 1) || r.Count < 1 {
			return fmt.Errorf("releases %d: %d at epsilon %v and delta %v: want at least one, epsilon ≥ 0 and delta "+
				"in [0, 1)", i+1, r.Count, r.Each.Epsilon, r.Each.Delta)
		}
	}
	return nil
}

// Basic is the sum of all ε and of all δ (Dwork, Kenthapadi, McSherry, Mironov,
// Naor 2006). A sum of δ of 1 or more promises nothing.
func Basic(rs []Releases) (Budget, error) {
	var total Budget
	if err := checkReleases(rs); err != nil {
		return total, err
	}
	for _, r := range rs {
		total.Epsilon += float64(r.Count) * r.Each.Epsilon
		total.Delta += float64(r.Count) * r.Each.Delta
	}
	return total, nil
}

// advancedComposition is advanced composition (Dwork, Rothblum, Vadhan 2010, Theorem III.3):
//
//	ε = √(2 ln(1/slack) Σ εᵢ²) + Σ εᵢ(exp(εᵢ) − 1),  δ = Σ δᵢ + slack,
//
// with slack in (0, 1). Above εᵢ of about 1 it is worse than Basic; where the
// exponential overflows, ε is +Inf.
func advancedComposition(rs []Releases, slack float64) (Budget, error) {
	if err := checkDelta(slack); err != nil {
		return Budget{}, fmt.Errorf("slack: %w", err)
	}
	total, err := Basic(rs)
	if err != nil {
		return total, err
	}
	squares, drift := 0.0, 0.0
	for _, r := range rs {
		e, k := r.Each.Epsilon, float64(r.Count)
		squares += k * e * e
		drift += k * e * math.Expm1(e)
	}
	return Budget{Epsilon: math.Sqrt(-2*math.Log(slack)*squares) + drift, Delta: total.Delta + slack}, nil
}

// mostOptimal is the largest number of releases that optimal composes.
const mostOptimal = 1_000_000

// optimal is the least ε that any k releases of the same (ε₀, δ₀) are sure to
// have at δ, whatever they are (Kairouz, Oh, Viswanath 2015, Theorem 3.3, at any
// δ between the corners printed there). It is +Inf where δ cannot be had:
// when 1 − (1−δ₀)ᵏ > δ.
//
// Each release is dominated by one that gives everything away with probability
// δ₀ and otherwise answers a bit by randomised response; the number l of true
// answers is binomial, with privacy loss (2l−k)ε₀.
func optimal(each Releases, delta float64) (epsilon float64, err error) {
	if err := checkReleases([]Releases{each}); err != nil {
		return 0, err
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	if each.Count > mostOptimal {
		return 0, fmt.Errorf("optimal composition of %d releases: it is summed up to %d", each.Count, mostOptimal)
	}
	k, e0 := float64(each.Count), each.Each.Epsilon
	// δ that is left for randomised response: 1 − (1−δ)/(1−δ₀)ᵏ.
	rest := -math.Expm1(math.Log1p(-delta) - k*math.Log1p(-each.Each.Delta))
	if rest < 0 {
		return math.Inf(1), nil
	}
	if e0 == 0 {
		return 0, nil
	}
	if math.IsInf(e0, 1) {
		return e0, nil
	}
	// P(l) = C(k,l) exp(lε₀)/(1+exp ε₀)ᵏ and Q(l) = P(k−l). Taking in the losses
	// from the largest down, Σ P − exp(ε)·Σ Q = rest has its root in the right
	// interval exactly once.
	logYes := -math.Log1p(math.Exp(-e0)) // ln of the probability of a true answer
	all, _ := math.Lgamma(k + 1)
	var p, q logSum
	for l := k; 2*l > k; l-- {
		in, _ := math.Lgamma(l + 1)
		out, _ := math.Lgamma(k - l + 1)
		choose := all - in - out
		p.add(choose + k*logYes - (k-l)*e0)
		q.add(choose + k*logYes - l*e0)
		ratio := rest * math.Exp(-p.log()) // rest / Σ P
		if ratio >= 1 {
			continue
		}
		epsilon := p.log() + math.Log1p(-ratio) - q.log()
		if epsilon >= (2*(l-1)-k)*e0 {
			return max(epsilon, 0), nil
		}
	}
	return 0, nil
}
