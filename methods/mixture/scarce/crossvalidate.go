package scarce

import (
	"math"
	"math/rand/v2"
)

// Cross-validation for the verdict. Folds are of equal shares of both classes; with
// more than ten there is more work and no more rows.
const (
	maxFolds = 10
	repeats  = 5 // partitions into folds, whose results are averaged
)

// placements are the parts of a cross-validated AUC that single rows contribute: of
// a row of the scarce class, the share of the other class in its fold that scores lower; of
// another row, the share of the scarce class in its fold that scores higher. Their
// means over either class are the AUC (DeLong, DeLong and Clarke-Pearson 1988).
type placements []float64

// partition deals rows to folds, both classes evenly, and returns the fold of each.
func partition(labels []bool, folds int, rng *rand.Rand) []int {
	fold := make([]int, len(labels))
	next := 0
	for _, class := range []bool{true, false} {
		for _, i := range rng.Perm(len(labels)) {
			if labels[i] == class {
				fold[i] = next % folds
				next++
			}
		}
	}
	return fold
}

// crossValidate returns the placements of each arm: fitted without a fold and what it adds, judged
// on it, over all folds and repeats. All arms see the same folds. Every
// fold must get rows of both classes.
func crossValidate(own Labelled, generated [][]float64, seed uint64) (map[Arm]placements, error) {
	scarce, other := own.Count()
	folds := min(maxFolds, scarce, other)
	out := make(map[Arm]placements)
	for _, a := range arms {
		out[a] = make(placements, len(own.Rows))
	}
	for repeat := range uint64(repeats) {
		fold := partition(own.Labels, folds, rand.New(rand.NewPCG(seed, repeat)))
		for f := range folds {
			train := own.pick(func(i int) bool { return fold[i] != f })
			test := own.pick(func(i int) bool { return fold[i] == f })
			for at, a := range arms {
				c, _, err := a.fit(train, generated, rand.New(rand.NewPCG(seed, 1<<32|repeat<<16|uint64(f)<<8|uint64(at))))
				if err != nil {
					return nil, err
				}
				p, err := c.Probability(test.Rows)
				if err != nil {
					return nil, err
				}
				next := 0
				for i := range own.Rows {
					if fold[i] == f {
						out[a][i] += place(p, test.Labels, next) / repeats
						next++
					}
				}
			}
		}
	}
	return out, nil
}

// place returns the placement of row i among those of the other class.
func place(scores []float64, labels []bool, i int) float64 {
	won, n := 0.0, 0.0
	for j, y := range labels {
		if y == labels[i] {
			continue
		}
		n++
		switch d := scores[i] - scores[j]; {
		case d == 0:
			won += 0.5
		case d > 0 == labels[i]:
			won++
		}
	}
	return won / n
}

// auc returns the mean placement of the scarce class.
func (p placements) auc(labels []bool) float64 {
	sum, n := 0.0, 0.0
	for i, y := range labels {
		if y {
			sum += p[i]
			n++
		}
	}
	return sum / n
}

// gain returns by how much the AUC of p is above that of q, and the standard error
// of this difference over rows: √(S²₁/n₁ + S²₀/n₀), S² the variances of differences of
// placements in either class. It leaves out that other rows would have given
// other classifiers, which no number of folds shows (Bengio and Grandvalet 2004).
func (p placements) gain(q placements, labels []bool) (gain, err float64) {
	for _, class := range []bool{true, false} {
		sum, squares, n := 0.0, 0.0, 0.0
		for i, y := range labels {
			if y == class {
				sum += p[i] - q[i]
				n++
			}
		}
		mean := sum / n
		for i, y := range labels {
			if y == class {
				e := p[i] - q[i] - mean
				squares += e * e
			}
		}
		err += squares / (n - 1) / n
		if class {
			gain = mean
		}
	}
	return gain, math.Sqrt(err)
}
