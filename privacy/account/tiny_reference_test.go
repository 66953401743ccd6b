package account

import (
	"math"
	"testing"
)

// reference is the privacy loss of a composition in one direction, for tests: it
// shares nothing with the package but the definition of the mechanisms. Losses of
// sampled mechanisms are those at the nodes of Gauss and Legendre's rule on short
// panels of the output. The largest, which together have the probability cut, are
// left out, so that δ is between delta and delta + cut.
type reference struct {
	parts []referencePart
	cut   float64
}

type referencePart struct {
	gaussian, laplace float64 // μ² or ε₀, if the losses are not listed
	losses, logP      []float64
	count             float64
}

// Nodes and weights of ten points on [−1, 1].
var tenPoints = [...][2]float64{
	{0.1488743389816312, 0.2955242247147529},
	{0.4333953941292472, 0.2692667193099963},
	{0.6794095682990244, 0.2190863625159821},
	{0.8650633666889845, 0.1494513491505806},
	{0.9739065285171717, 0.0666713443086881},
}

// newReferences returns the references of a plan, one for each direction, with a
// cut of 1e-5 δ.
func newReferences(q query) (rs []reference) {
	directions := []direction{remove, add}
	shift := 1.0
	if q.a == ReplaceOne {
		directions, shift = []direction{replace}, 2
	}
	var steps float64
	for _, m := range q.ms {
		steps += float64(m.Count)
	}
	for _, dir := range directions {
		r := reference{cut: 1e-5 * q.delta}
		for _, m := range q.ms {
			p := referencePart{count: float64(m.Count)}
			switch {
			case m.Kind == Laplace:
				p.laplace = shift / m.Noise
			case m.Rate == 1:
				p.gaussian = shift * shift / m.Noise / m.Noise
			default:
				p.losses, p.logP = listLosses(m, dir, r.cut/steps)
			}
			r.parts = append(r.parts, p)
		}
		rs = append(rs, r)
	}
	return rs
}

// listLosses returns the losses of a sampled mechanism at outputs x σ, without
// those of probability cut at the upper end of x.
func listLosses(m Mechanism, dir direction, cut float64) (losses, logP []float64) {
	q, s := m.Rate, m.Noise
	tail := func(x float64) float64 {
		return ((1-q)*math.Erfc(x/math.Sqrt2) + q*math.Erfc((x-1/s)/math.Sqrt2)) / 2
	}
	end := 0.0
	for tail(end) > cut {
		end += 0.001
	}
	if dir == add {
		end = 12
	}
	lift := func(z float64) float64 { return math.Log1p(q * math.Expm1(z)) }
	at := func(x float64) (loss, logRatio float64) { // of P to the central normal
		up, down := lift(x/s-1/(2*s*s)), lift(-x/s-1/(2*s*s))
		switch dir {
		case add:
			return -up, 0
		case replace:
			return up - down, up
		}
		return up, up
	}
	first, _ := at(-12)
	last, _ := at(end)
	most := math.Max(first, last) // far below its negative no loss has a part in δ
	for a := -12.0; a < end; {
		b := math.Min(a+0.2, end)
		for from, _ := at(a); b > a+1e-3; b = (a + b) / 2 {
			if to, _ := at(b); math.Abs(to-from) < most/300 || math.Max(from, to) < -2*most {
				break
			}
		}
		half := (b - a) / 2
		for i := range 2 * len(tenPoints) {
			node, sign := tenPoints[max(4-i, i-5)], 1.
			if i < 5 {
				sign = -1
			}
			x := a + half + half*node[0]*sign
			loss, p := at(x)
			losses = append(losses, loss)
			logP = append(logP, p-x*x/2-math.Log(2*math.Pi)/2+math.Log(half*node[1]))
		}
		a = b
	}
	return losses, logP
}

// mgf returns log E exp(sL) for a real s.
func (r reference) mgf(s float64) (k float64) {
	for _, p := range r.parts {
		var one float64
		switch {
		case p.gaussian > 0:
			one = p.gaussian * s * (s + 1) / 2
		case p.laplace > 0:
			one = math.Log((s+1)/(2*s+1)*math.Exp(s*p.laplace) + s/(2*s+1)*math.Exp(-(s+1)*p.laplace))
		default:
			top := math.Inf(-1)
			for i, l := range p.losses {
				top = math.Max(top, p.logP[i]+s*l)
			}
			var sum float64
			for i, l := range p.losses {
				sum += math.Exp(p.logP[i] + s*l - top)
			}
			one = top + math.Log(sum)
		}
		k += p.count * one
	}
	return k
}

// ray returns an iterator over E exp((θ + iωj)L)/E exp(θL) of a part, j = 0, 1, …
func (p referencePart) ray(theta, omega float64) func() complex128 {
	if p.losses == nil {
		j := -1.0
		return func() complex128 {
			j++
			s := complex(theta, j*omega)
			if p.gaussian > 0 {
				v := complex(p.gaussian/2, 0)
				return expc(v*s*(s+1) - v*complex(theta*(theta+1), 0))
			}
			e := complex(p.laplace, 0)
			f := func(s complex128) complex128 {
				return ((s+1)*expc(s*e) + s*expc(-(s+1)*e)) / (2*s + 1)
			}
			return f(s) / f(complex(theta, 0))
		}
	}
	one := reference{parts: []referencePart{{losses: p.losses, logP: p.logP, count: 1}}}
	k := one.mgf(theta)
	var at, turn []complex128
	for i, l := range p.losses {
		if w := math.Exp(p.logP[i] + theta*l - k); w > 1e-18 {
			at, turn = append(at, complex(w, 0)), append(turn, expc(complex(0, omega*l)))
		}
	}
	return func() (sum complex128) {
		for i, z := range at {
			sum += z
			at[i] = z * turn[i]
		}
		return sum
	}
}

func expc(z complex128) complex128 {
	sin, cos := math.Sincos(imag(z))
	r := math.Exp(real(z))
	return complex(r*cos, r*sin)
}

// delta returns bounds on δ(ε) by the integral of exp(K(s) − sε)/(s(s+1)) over a
// line Re s = θ, summed at frequencies whose distance is halved until that changes
// nothing. A wide interval means that it converges slowly; the bounds rely on a
// spectrum that does not come back, as that of smooth losses does not.
func (r reference) delta(epsilon float64) (lo, hi float64) {
	if epsilon >= r.most() {
		return 0, r.cut
	}
	exponent := func(logTheta float64) float64 {
		t := math.Exp(logTheta)
		return r.mgf(t) - t*epsilon - math.Log(t) - math.Log1p(t)
	}
	a, b := -4.0, 30.0
	for b-a > 0.02 {
		if x, y := a+0.382*(b-a), a+0.618*(b-a); exponent(x) < exponent(y) {
			b = y
		} else {
			a = x
		}
	}
	theta := math.Exp((a + b) / 2)
	log := exponent((a + b) / 2)
	eta := theta / 8
	last := math.Inf(1)
	for range 12 {
		sum, rest := r.sum(theta, epsilon, eta)
		scale := math.Exp(log) * eta / math.Pi
		sum, rest = sum*scale, rest*scale
		if math.Abs(sum-last) < 1e-5*sum {
			return sum*(1-1e-5) - rest, sum*(1+1e-9) + rest + r.cut
		}
		last = sum
		eta /= 2
	}
	return 0, 1
}

// most returns the largest loss.
func (r reference) most() (sum float64) {
	for _, p := range r.parts {
		switch {
		case p.gaussian > 0:
			return math.Inf(1)
		case p.laplace > 0:
			sum += p.count * p.laplace
		default:
			sum += p.count * math.Max(p.losses[0], p.losses[len(p.losses)-1])
		}
	}
	return sum
}

// atoms says whether the spectrum may come back.
func (r reference) atoms() bool {
	for _, p := range r.parts {
		if p.laplace > 0 {
			return true
		}
	}
	return false
}

// finest returns a frequency to which the nodes are close enough: half a radian
// from one to the next, for all that matter of the tilted losses.
func (r reference) finest(theta float64) float64 {
	omega := math.Inf(1)
	for _, p := range r.parts {
		top := math.Inf(-1)
		for i, l := range p.losses {
			top = math.Max(top, p.logP[i]+theta*l)
		}
		for i := 1; i < len(p.losses); i++ {
			if p.logP[i]+theta*p.losses[i] > top-18 {
				omega = math.Min(omega, 1.5/math.Abs(p.losses[i]-p.losses[i-1]))
			}
		}
	}
	return omega
}

// sum adds up the integrand over its value at θ, and bounds what it leaves out.
func (r reference) sum(theta, epsilon, eta float64) (sum, rest float64) {
	var rays []func() complex128
	for _, p := range r.parts {
		rays = append(rays, p.ray(theta, eta))
	}
	sum = -0.5
	size := 0.5
	next := 64
	for j := 0; ; next *= 2 {
		var largest float64
		for ; j < next; j++ {
			w := eta * float64(j)
			var log complex128
			for i, ray := range rays {
				z := ray()
				n := r.parts[i].count
				log += complex(n*math.Log(math.Hypot(real(z), imag(z))), n*math.Atan2(imag(z), real(z)))
			}
			log -= complex(0, w*epsilon)
			z := expc(log)
			if j >= next/2 {
				largest = math.Max(largest, math.Exp(real(log)))
			}
			if r.atoms() {
				largest = 1
			}
			z /= complex(1, w/theta) * complex(1, w/(1+theta))
			sum += real(z)
			size += math.Hypot(real(z), imag(z))
		}
		rest = largest*theta*(1+theta)/(eta*eta*float64(next)) + 1e-12*size
		if rest < 1e-4*sum || next >= 1<<14 || 2*eta*float64(next) > r.finest(theta) {
			return sum, rest
		}
	}
}

// single returns δ(ε) of one sampled step by Simpson's rule on the outputs whose
// loss is above ε, P − exp(ε) Q being exact there to the last digits.
func single(m Mechanism, dir direction, epsilon float64) float64 {
	q, s := m.Rate, m.Noise
	excess := func(x float64) float64 { // (P − exp(ε) Q)/φ(x)
		up, down := q*math.Expm1(x/s-1/(2*s*s)), q*math.Expm1(-x/s-1/(2*s*s))
		switch dir {
		case remove:
			return up - math.Expm1(epsilon)
		case add:
			return -up*math.Exp(epsilon) - math.Expm1(epsilon)
		}
		return up - down - math.Expm1(epsilon)*(1+down)
	}
	// The excess changes its sign once: it rises, for add it falls.
	side := 1.0
	if dir == add {
		side = -1
	}
	lo, hi := -50.0, 50.0
	for range 200 {
		if x := (lo + hi) / 2; excess(side*x) > 0 {
			hi = x
		} else {
			lo = x
		}
	}
	const n = 4000
	end := math.Max(lo+1, 12+1/s)
	h := (end - lo) / n
	var sum float64
	for i := range n + 1 {
		w := 2. + 2*float64(i%2)
		if i == 0 || i == n {
			w = 1
		}
		x := lo + float64(i)*h
		sum += w * math.Max(0, excess(side*x)) * math.Exp(-x*x/2)
	}
	return sum * h / 3 / math.Sqrt(2*math.Pi)
}

// TestReferences: both references know a value of the other.
func TestReferences(t *testing.T) {
	m := gaussian(1.5, 0.1, 1)
	for i, r := range newReferences(query{[]Mechanism{m}, AddRemove, 1e-8}) {
		const epsilon = 0.1
		want := single(m, direction(i), epsilon)
		if lo, hi := r.delta(epsilon); lo > want || hi < want || hi-lo > 0.02*want {
			t.Errorf("direction %d: δ in [%v, %v], want %v", i, lo, hi, want)
		}
	}
}
