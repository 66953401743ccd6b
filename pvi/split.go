package pvi

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Scheme is the paper's way to distribute rows over clients (appendix C): half of
// them small, half large, with Rho for how far sizes differ and Kappa for how far
// the classes do.
type Scheme struct {
	Clients int     // M: even, at least 2
	Rho     float64 // 0: equal sizes; 1: small clients have nothing
	Kappa   float64 // 0: equal classes; above, fewer rows of the minority class at small clients
}

// SchemeA to SchemeD are the paper's four (Table 1).
var (
	SchemeA = Scheme{10, 0, 0}
	SchemeB = Scheme{10, 0.9, 0.95}
	SchemeC = Scheme{10, 0.7, -3}
	SchemeD = Scheme{10, 0.6, -1.5}
)

// Shares are the numbers of rows that a scheme comes to.
type Shares struct {
	Small, Large     int     // rows of each small and each large client
	Majority         float64 // share of the majority class among all rows
	Target           float64 // the same that is aimed at for small clients
	SmallMajority    int     // rows of the majority class at each small client
	SmallMinority    int
	Unused           int     // rows that nobody is given
	MinoritySmall    float64 // share of the minority class at small clients; NaN if they have no rows
	MinorityLeft     float64 // the same of what is left for large clients; NaN if nothing is
	enoughOfBothLeft bool
}

// Shares works out a scheme for n rows of which majority are of the larger class.
// A scheme that these rows cannot fill has shares all the same: see
// [Shares.Valid].
func (s Scheme) Shares(n, majority int) (Shares, error) {
	if s.Clients < 2 || s.Clients%2 != 0 {
		return Shares{}, fmt.Errorf("%d clients: want an even number of them", s.Clients)
	}
	if !(s.Rho >= 0 && s.Rho <= 1) || !finite(s.Kappa) {
		return Shares{}, fmt.Errorf("rho %v and kappa %v: want rho between 0 and 1 and kappa finite", s.Rho, s.Kappa)
	}
	if majority < 0 || majority > n || n == 0 {
		return Shares{}, fmt.Errorf("%d of %d rows in the majority class", majority, n)
	}
	m, half := float64(s.Clients), s.Clients/2
	h := Shares{Small: int(math.Floor((1 - s.Rho) * float64(n) / m)), Large: int(math.Floor((1 + s.Rho) * float64(n) / m))}
	h.Majority = float64(majority) / float64(n)
	h.Target = h.Majority + (1-h.Majority)*s.Kappa
	h.SmallMajority = int(math.Floor(float64(h.Small) * h.Target))
	h.SmallMinority = h.Small - h.SmallMajority
	h.Unused = n - half*(h.Small+h.Large)
	left := n - half*h.Small
	h.MinoritySmall = float64(h.SmallMinority) / float64(h.Small)
	h.MinorityLeft = float64(n-majority-half*h.SmallMinority) / float64(left)
	h.enoughOfBothLeft = half*h.SmallMajority <= majority && half*h.SmallMinority <= n-majority
	return h, nil
}

// Valid says whether there are enough rows of both classes, and no client would
// need less than none.
func (h *Shares) Valid() bool {
	return h.SmallMajority >= 0 && h.SmallMinority >= 0 && h.Unused >= 0 && h.enoughOfBothLeft
}

// Assign gives each row a client: 0 … M/2−1 are small, M/2 … M−1 large, −1 is
// nobody. Majority says which rows are of the larger class. Who is given which row
// is drawn.
func (s Scheme) Assign(majority []bool, r *rand.Rand) ([]int, error) {
	classes := [2][]int{}
	for i, is := range majority {
		class := 1
		if is {
			class = 0
		}
		classes[class] = append(classes[class], i)
	}
	h, err := s.Shares(len(majority), len(classes[0]))
	if err != nil {
		return nil, err
	}
	if !h.Valid() {
		return nil, fmt.Errorf("rho %v and kappa %v want %d and %d rows of the two classes at each of %d small clients: there are %d and %d", s.Rho, s.Kappa, h.SmallMajority, h.SmallMinority, s.Clients/2, len(classes[0]), len(classes[1]))
	}
	client := make([]int, len(majority))
	for i := range client {
		client[i] = -1
	}
	var left []int
	for class, each := range []int{h.SmallMajority, h.SmallMinority} {
		rows := classes[class]
		r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		for m := range s.Clients / 2 {
			for _, i := range rows[m*each : (m+1)*each] {
				client[i] = m
			}
		}
		left = append(left, rows[s.Clients/2*each:]...)
	}
	r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for m := range s.Clients / 2 {
		for _, i := range left[m*h.Large : (m+1)*h.Large] {
			client[i] = s.Clients/2 + m
		}
	}
	return client, nil
}

// PaperDelta is the δ of the paper's Table 1 for a client with n ≥ 1 rows,
// 10^⌊log₁₀(1/n)⌋: at most 1/n, but by less than the factor ten that the paper
// speaks of.
func PaperDelta(n int) float64 {
	p := 1.0
	for p < float64(n) {
		p *= 10
	}
	return 1 / p
}

// PaperBatch is the number of rows that the paper's minibatches are to have on
// average, of n ≥ 1: max(20, ⌈share·n⌉) with a share of 0.02, but never more than
// there are. Over n it is the rate of Poisson sampling.
func PaperBatch(n int, share float64) int {
	return min(n, max(20, int(math.Ceil(share*float64(n)))))
}
