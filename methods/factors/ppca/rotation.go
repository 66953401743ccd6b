package ppca

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Power is the usual power of Promax (Hendrickson and White 1964).
const Power = 4

// sweeps bounds the passes over all pairs of factors; some tens are usual.
const sweeps = 1000

// Varimax maximises Σ_a (Σ_j b_ja⁴ − (Σ_j b_ja²)²/p) over orthogonal T, b = A T with
// rows divided by their length, so that a feature's own variance does not matter
// (Kaiser 1958). It turns one pair of factors after the other by the angle that is best
// for the pair, from T = I until no angle is above 1e-10; of several local maxima it
// finds the one that this leads to.
func Varimax(a []float64, q int) (t []float64, err error) {
	if t, err = varimax(a, q); err != nil {
		return nil, err
	}
	return arrange(a, t, q)
}

func varimax(a []float64, q int) ([]float64, error) {
	if err := check(a, q); err != nil {
		return nil, err
	}
	b, rows := make([]float64, 0, len(a)), 0.0
	for row := range slices.Chunk(a, q) {
		length := norm(row)
		if length == 0 {
			continue // its direction is not known
		}
		rows++
		for _, x := range row {
			b = append(b, x/length)
		}
	}
	t := make([]float64, q*q)
	for i := range q {
		t[i*q+i] = 1
	}
	for range sweeps {
		turned := false
		for i := range q {
			for k := i + 1; k < q; k++ {
				if angle := best(b, q, i, k, rows); math.Abs(angle) > 1e-10 {
					turned = true
					turn(b, q, i, k, angle)
					turn(t, q, i, k, angle)
				}
			}
		}
		if !turned {
			return t, nil
		}
	}
	return nil, errors.New("the varimax rotation did not converge")
}

// best returns the angle, at most π/4 in size, at which the criterion of columns i and
// k is largest, in closed form.
func best(b []float64, q, i, k int, rows float64) float64 {
	var su, sv, uu, uv float64
	for j := 0; j < len(b); j += q {
		x, y := b[j+i], b[j+k]
		u, v := x*x-y*y, 2*x*y
		su, sv, uu, uv = su+u, sv+v, uu+u*u-v*v, uv+2*u*v
	}
	sine, cosine := uv-2*su*sv/rows, uu-(su*su-sv*sv)/rows
	if math.Hypot(sine, cosine) <= 1e-14*rows {
		return 0 // every angle is as good
	}
	return math.Atan2(sine, cosine) / 4
}

func turn(b []float64, q, i, k int, angle float64) {
	s, c := math.Sincos(angle)
	for j := 0; j < len(b); j += q {
		x, y := b[j+i], b[j+k]
		b[j+i], b[j+k] = c*x+s*y, c*y-s*x
	}
}

// Promax starts from the varimax pattern X and takes the least-squares fit X U to
// |X|^power with X's signs, which makes small loadings smaller and lets factors
// correlate (Hendrickson and White 1964, with the loadings themselves and not their
// normalised rows in the target, as most programs do). The power is above 1, usually
// [Power]. It is an error if the loadings span fewer than q dimensions.
func Promax(a []float64, q int, power float64) ([]float64, error) {
	if !(power > 1 && power < 100) {
		return nil, fmt.Errorf("a power of %v for promax: above 1 and below 100", power)
	}
	t, err := varimax(a, q)
	if err != nil {
		return nil, err
	}
	x, orthogonal := new(mat.Dense), mat.NewDense(q, q, t)
	x.Mul(mat.NewDense(len(a)/q, q, a), orthogonal)
	target := mat.DenseCopyOf(x)
	target.Apply(func(_, _ int, v float64) float64 { return math.Copysign(math.Pow(math.Abs(v), power), v) }, target)
	var u, gram, inverse mat.Dense
	if err := u.Solve(x, target); err != nil {
		return nil, fmt.Errorf("the loadings tell fewer than %d factors apart, so promax has no answer", q)
	}
	gram.Mul(u.T(), &u)
	if err := inverse.Inverse(&gram); err != nil {
		return nil, fmt.Errorf("the factors that promax finds are nearly the same")
	}
	for c := range q {
		scale := math.Sqrt(inverse.At(c, c)) // gives factor c variance 1
		for r := range q {
			u.Set(r, c, u.At(r, c)*scale)
		}
	}
	var total mat.Dense
	total.Mul(orthogonal, &u)
	return arrange(a, total.RawMatrix().Data, q)
}

// arrange puts the factors of T in order and gives them their signs.
func arrange(a, t []float64, q int) ([]float64, error) {
	turned, factors := mat.NewDense(q, q, t), new(mat.Dense)
	if err := factors.Inverse(turned); err != nil {
		return nil, fmt.Errorf("the rotated factors are nearly the same")
	}
	var pattern, structure, covariance mat.Dense
	pattern.Mul(mat.NewDense(len(a)/q, q, a), turned)
	covariance.Mul(factors, factors.T())
	structure.Mul(&pattern, &covariance)
	order, variance, sign := make([]int, q), make([]float64, q), make([]float64, q)
	for c := range q {
		order[c] = c
		variance[c] = mat.Dot(pattern.ColView(c), structure.ColView(c))
		top := 0.0
		for j := range len(a) / q {
			// Loadings of equal size, rounding aside, must not decide by rounding.
			if x := pattern.At(j, c); math.Abs(x) > math.Abs(top)*(1+1e-9) {
				top = x
			}
		}
		sign[c] = math.Copysign(1, top)
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(variance[k], variance[i]) })
	out := make([]float64, q*q)
	for to, from := range order {
		for r := range q {
			out[r*q+to] = sign[from] * t[r*q+from]
		}
	}
	return out, nil
}

func check(a []float64, q int) error {
	if q < 1 || len(a) == 0 || len(a)%q != 0 {
		return fmt.Errorf("%d loadings cannot be those of %d factors", len(a), q)
	}
	for _, x := range a {
		if !(math.Abs(x) < 1e100) {
			return fmt.Errorf("a loading is %v", x)
		}
	}
	return nil
}

func norm(x []float64) float64 {
	s := 0.0
	for _, v := range x {
		s = math.Hypot(s, v)
	}
	return s
}
