package vae

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"parley/internal/testkit"
	"parley/internal/vectors"
)

func normals(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	return x
}

// drawn returns subjects with gaps: single values, and whole views of 3, 4 and 2 features.
func drawn(rng *rand.Rand, n int) (out []subject) {
	for i := range n {
		s := subject{normals(rng, 9), slices.Repeat([]bool{true}, 9)}
		s.seen[i%9] = false
		switch i % 4 {
		case 1:
			copy(s.seen[3:7], make([]bool, 4))
		case 2:
			copy(s.seen, make([]bool, 7))
		case 3:
			copy(s.seen, make([]bool, 9))
		}
		out = append(out, s)
	}
	return out
}

// Nothing that is missing has a part in the bound or its gradient but by the mean that
// stands for it in an encoder; a subject of whom nothing is known has none at all.
func TestWhatIsMissingIsLeftOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	n := newNetwork([]int{3, 4, 2}, &options{Model: multiChannel, Latent: 2})
	batch := drawn(rng, 4)
	theta := n.unpack(normals(rng, len(n.places)))
	m := n.machine(theta, 4)
	if v := m.ascent(batch[3:], rng); v != 0 || slices.ContainsFunc(m.grad, func(g float64) bool { return g != 0 }) {
		t.Errorf("a subject without any value adds %v to the bound", v)
	}
	m.ascent(batch[2:3], rng) // has the last view alone
	for _, c := range n.channels[:2] {
		for _, i := range n.places[c.at:c.end] {
			if m.grad[i] != 0 {
				t.Fatal("a view that nobody has moves its weights")
			}
		}
	}
}

// lowRank draws subjects of d features on a plane of q dimensions, with noise.
func lowRank(rng *rand.Rand, n, d, q int, noise float64) (out []subject, rows *mat.Dense) {
	w := mat.NewDense(d, q, normals(rng, d*q))
	rows = mat.NewDense(n, d, nil)
	for i := range n {
		x := mat.NewVecDense(d, nil)
		x.MulVec(w, mat.NewVecDense(q, normals(rng, q)))
		s := subject{make([]float64, d), slices.Repeat([]bool{true}, d)}
		for j := range d {
			s.x[j] = x.AtVec(j) + noise*rng.NormFloat64()
		}
		rows.SetRow(i, s.x)
		out = append(out, s)
	}
	return out, rows
}

// principal returns the first q principal axes of centred rows, d × q, and all eigenvalues of their
// covariance (by n), descending.
func principal(rows *mat.Dense, q int) (*mat.Dense, []float64) {
	n, d := rows.Dims()
	centred := mat.DenseCopyOf(rows)
	for j := range d {
		c := mat.Col(nil, j, rows)
		mean := 0.0
		for _, x := range c {
			mean += x / float64(n)
		}
		for i := range n {
			centred.Set(i, j, c[i]-mean)
		}
	}
	var svd mat.SVD
	svd.Factorize(centred, mat.SVDThin)
	var v mat.Dense
	svd.VTo(&v)
	values := svd.Values(nil)
	for i, s := range values {
		values[i] = s * s / float64(n)
	}
	return mat.DenseCopyOf(v.Slice(0, d, 0, q)), values
}

// With hardly any noise, the columns of a trained linear decoder span the plane of the principal
// components (Lucas et al. 2019).
func TestLinearDecoderSpansPrincipalComponents(t *testing.T) {
	const d, q = 8, 2
	rng := rand.New(rand.NewPCG(5, 6))
	subjects, rows := lowRank(rng, 120, d, q, 0.02)
	o := &options{Model: linear, Latent: q, Optimiser: optimiserAdam, LearningRate: 0.01}
	n := newNetwork([]int{d}, o)
	packed, before := n.start(rng), 0.0
	for i, rate := range []float64{0.01, 0.003, 0.001} {
		var loss float64
		var err error
		o.LearningRate = rate
		if packed, loss, err = n.fit(t.Context(), o, packed, subjects, 1500, rng); err != nil || i > 0 &&
			loss > before+1 {
			t.Fatal(loss, before, err)
		}
		before = loss
	}
	axes, _ := principal(rows, q)
	wt, _ := n.channels[0].decoder[0].Weights(n.unpack(packed))
	stride := n.channels[0].decoder[0].Stride()
	for a := range q {
		w := mat.NewVecDense(d, slices.Clone(wt[a*stride:a*stride+d]))
		var inside mat.VecDense
		inside.MulVec(axes.T(), w)
		if sine := math.Sqrt(max(0, 1-math.Pow(mat.Norm(&inside, 2)/mat.Norm(w, 2), 2))); sine > 0.02 {
			t.Errorf("column %d of the decoder leaves the plane by an angle of sine %v", a+1, sine)
		}
	}
}

// At the maximum of probabilistic PCA, with orthogonal loadings, the bound is the marginal
// likelihood and its gradient is zero (Lucas et al. 2019, "Don't blame the ELBO!", section 4).
func TestBoundIsTightAtPrincipalComponents(t *testing.T) {
	const d, q, count, draws = 5, 2, 40, 4000
	rng := rand.New(rand.NewPCG(7, 8))
	subjects, rows := lowRank(rng, count, d, q, 0.5)
	axes, values := principal(rows, q)
	s2 := 0.0
	for _, v := range values[q:] {
		s2 += v / (d - q)
	}
	n := newNetwork([]int{d}, &options{Model: linear, Latent: q})
	theta := make([]float64, n.size)
	c := &n.channels[0]
	up, upB := c.encoder[0].Weights(theta)
	down, downB := c.decoder[0].Weights(theta)
	want := 0.0 // the marginal log-likelihood
	for j := range d {
		for i := range count {
			downB[j] += rows.At(i, j) / count
		}
		theta[c.noise+j] = math.Log(s2)
		want -= count * (math.Log(2*math.Pi) + 1 + math.Log(max(s2, 0))) / 2
		if j < q {
			want -= count * math.Log(values[j]/s2) / 2
		}
	}
	for a := range q {
		w := math.Sqrt(values[a] - s2) // the length of a column; M_aa = w² + σ² = λ_a
		upB[q+a] = math.Log(s2 / values[a])
		for j := range d {
			down[a*c.decoder[0].Stride()+j] = w * axes.At(j, a)
			up[j*c.encoder[0].Stride()+a] = w / values[a] * axes.At(j, a)
			upB[a] -= w / values[a] * axes.At(j, a) * downB[j]
		}
	}
	m := n.machine(theta, count)
	sum, squares := 0.0, 0.0
	total, square := make([]float64, n.size), make([]float64, n.size)
	for range draws {
		clear(m.grad)
		v := m.ascent(subjects, rng) - want
		sum, squares = sum+v, squares+v*v
		for i, g := range m.grad {
			total[i], square[i] = total[i]+g, square[i]+g*g
		}
	}
	// Means of independent draws: beyond 5 standard errors in one of 40 numbers less than once in 4·10⁴ seeds.
	off := func(sum, squares float64) float64 {
		mean := sum / draws
		return math.Abs(mean) / math.Sqrt(max(squares/draws-mean*mean, 1e-20)/draws)
	}
	if z := off(sum, squares); z > 5 {
		t.Errorf("the bound is %v above the marginal likelihood of %v, %v standard errors", sum/draws, want, z)
	}
	shared := 0.0 // only one variance for all was maximised over
	for i := range n.size {
		if i >= c.noise {
			shared += total[i] / draws
		} else if z := off(total[i], square[i]); z > 5 {
			t.Errorf("the gradient by parameter %d is %v, %v standard errors", i, total[i]/draws, z)
		}
	}
	if math.Abs(shared) > 0.5 { // of 100 = count·d/2 in either direction; its standard error is below 0.1
		t.Errorf("the gradient by a common noise variance is %v", shared)
	}
}

// verifyVectors holds the bound to one file of numbers from an independent implementation, which
// testdata/vae/README.md describes.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{
		"vae/bound/1": vectors.Format((*boundJSON).verify)})
}

func vectorFiles(t testing.TB) map[string][]byte {
	return testkit.Files(t, "testdata/vae/*.json", 1)
}

func TestVectorsAgree(t *testing.T) {
	for _, file := range vectorFiles(t) {
		testkit.Agree(t, testkit.Get(verifyVectors(file))(t), 8)
	}
}

// unused are inputs on which nothing depends: what stands for values that all have, and
// draws for a channel that a subject lacks.
var unused = regexp.MustCompile(`\.fill\[[24]\]$|\.cases\[[23]\]\.(fill\[[01]\]|draws\[[45]\])$`)

func TestChangedVectorsDisagree(t *testing.T) {
	for _, file := range vectorFiles(t) {
		testkit.Changed(t, file, unused, 60, verifyVectors)
	}
}

type boundJSON struct {
	Schema string      `json:"schema"`
	Cases  []boundCase `json:"cases"`
}

type boundCase struct {
	Model    string       `json:"model"`
	Hidden   int          `json:"hidden"`
	Latent   int          `json:"latent"`
	Dims     []int        `json:"dims"`
	Weights  []float64    `json:"weights"`
	Rows     [][]*float64 `json:"rows"` // nil for what was not observed
	Fill     []float64    `json:"fill"` // by feature: what stands for it
	Draws    []float64    `json:"draws"`
	Bound    float64      `json:"bound"`
	Gradient []float64    `json:"gradient"`
}

var tolBound = vectors.Tolerance{Rel: 1e-9, Floor: 0.1}

func (f *boundJSON) verify(list *vectors.List) error {
	for i := range f.Cases {
		c := &f.Cases[i]
		value, grad, err := c.compute()
		if err != nil {
			return fmt.Errorf("cases[%d]: %w", i, err)
		}
		list.Float(fmt.Sprintf("cases[%d].bound", i), c.Bound, value, tolBound)
		list.Floats(fmt.Sprintf("cases[%d].gradient", i), c.Gradient, grad, tolBound)
	}
	return nil
}

// givenDraws are handed out in turn.
type givenDraws []float64

func (d *givenDraws) NormFloat64() float64 {
	x := (*d)[0]
	*d = (*d)[1:]
	return x
}

// compute returns the bound and its gradient by the weights.
func (c *boundCase) compute() (float64, []float64, error) {
	const most = 1000 // of anything
	if !slices.Contains([]string{linear, twoLayer, multiChannel}, c.Model) {
		return 0, nil, fmt.Errorf("there is no model %q", c.Model)
	}
	for _, n := range append([]int{c.Latent, c.Hidden + 1, len(c.Dims)}, c.Dims...) {
		if n < 1 || n > most {
			return 0, nil, fmt.Errorf("%d numbers of a code, a hidden layer, views or features", n)
		}
	}
	n := newNetwork(c.Dims, &options{Model: c.Model, Latent: c.Latent, Hidden: c.Hidden})
	if len(c.Weights) != len(n.places) || len(c.Fill) != n.features ||
		len(c.Draws) != len(n.channels)*len(c.Rows)*c.Latent {
		return 0, nil, fmt.Errorf("%d weights, %d features and %d draws, and the model has %d, %d and %d",
			len(c.Weights), len(c.Fill), len(c.Draws),
			len(n.places), n.features, len(n.channels)*len(c.Rows)*c.Latent)
	}
	var batch []subject
	for i, row := range c.Rows {
		if len(row) != n.features {
			return 0, nil, fmt.Errorf("rows[%d] has %d features of %d", i, len(row), n.features)
		}
		s := subject{slices.Clone(c.Fill), make([]bool, n.features)}
		for j, x := range row {
			if x != nil {
				s.x[j], s.seen[j] = *x, true
			}
		}
		batch = append(batch, s)
	}
	m := n.machine(n.unpack(c.Weights), len(batch))
	draws := givenDraws(c.Draws)
	value := m.ascent(batch, &draws)
	return value, n.pack(m.grad), nil
}
