package vae

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"parley/internal/testkit"
	"parley/internal/vectors"
)

// verifyVectors holds the bound to one file of numbers from an independent implementation, which
// testdata/vae/README.md describes.
func verifyVectors(file []byte) ([]vectors.Check, error) {
	return vectors.Run(file, map[string]func([]byte, *vectors.List) error{"vae/bound/1": vectors.Format((*boundJSON).verify)})
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
	if len(c.Weights) != len(n.places) || len(c.Fill) != n.features || len(c.Draws) != len(n.channels)*len(c.Rows)*c.Latent {
		return 0, nil, fmt.Errorf("%d weights, %d features and %d draws, and the model has %d, %d and %d", len(c.Weights), len(c.Fill), len(c.Draws),
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
