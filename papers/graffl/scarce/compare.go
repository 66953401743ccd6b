package scarce

import (
	"errors"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// arm is one thing that a site may do about its scarce class.
type arm int

const (
	raw         arm = iota // nothing
	oversampled            // rows of the class drawn again: see [Oversample]
	generated              // rows from a model of all sites
	arms
)

var errOneClass = errors.New("the rows have one class only")

// Oversample returns extra rows that are drawn from rows with replacement:
// random oversampling. They share memory with rows. No rows to draw from are an error.
func Oversample(rows [][]float64, extra int, rng *rand.Rand) ([][]float64, error) {
	if len(rows) == 0 && extra > 0 {
		return nil, errors.New("oversampling: no rows to draw from")
	}
	out := make([][]float64, 0, max(extra, 0))
	for range extra {
		out = append(out, rows[rng.IntN(len(rows))])
	}
	return out, nil
}

// fit returns an arm's classifier, fitted to rows and as many more of the scarce class as bring it
// level with the other. Synthetic rows are drawn without replacement: if there are too few, all.
func (a arm) fit(rows Labelled, synthetic [][]float64, rng *rand.Rand) (c *LinearClassifier, err error) {
	scarce, other := rows.Count()
	lacking := max(other-scarce, 0)
	if scarce == 0 && a != generated {
		return nil, errOneClass
	}
	var extra [][]float64
	switch a {
	case oversampled:
		if extra, err = Oversample(rows.Scarce(), lacking, rng); err != nil {
			return nil, err
		}
	case generated:
		for _, i := range rng.Perm(len(synthetic))[:min(lacking, len(synthetic))] {
			extra = append(extra, synthetic[i])
		}
	}
	all := rows.With(extra)
	return FitLinear(all.Rows, all.Labels, Penalty)
}

// minJudged is the number of own rows of each class below which no verdict on
// synthetic rows is given: they are not kept.
const minJudged = 5

// verdictLevel is the chance that a gain of nothing but chance passes: the level of
// a one-sided t test, with the degrees of freedom of the smaller class.
const verdictLevel = 0.1

// Keep says whether a site should keep synthetic rows of its scarce class, and returns the classifier to use:
// with them if they are kept, else that of the own rows alone.
//
// The verdict is a test: they are kept only if they raise the AUC of repeated stratified
// cross-validation on the own rows beyond chance (a one-sided t test at the level 10 %), to no less than
// oversampling reaches. Adding rows moves the share of the class, which the AUC does not see. The generator has
// seen the rows that it is judged on; where a site has most rows of the class, the test is too kind.
func Keep(own Labelled, synthetic [][]float64, seed uint64) (c *LinearClassifier, kept bool, err error) {
	scarce, other := own.Count()
	if scarce < other && scarce >= minJudged && len(synthetic) > 0 {
		validated, err := crossValidate(own, synthetic, seed)
		if err != nil {
			return nil, false, err
		}
		made := validated[generated]
		gain, wrong := made.gain(validated[raw], own.Labels)
		t := distuv.StudentsT{Sigma: 1, Nu: float64(scarce - 1)}.Quantile(1 - verdictLevel)
		kept = gain > t*wrong && validated[oversampled].auc(own.Labels) <= made.auc(own.Labels)
	}
	a := raw
	if kept {
		a = generated
	}
	c, err = a.fit(own, synthetic, rand.New(rand.NewPCG(seed, 1<<40|uint64(a))))
	return c, kept, err
}

// F1 is that of y = 1 at a probability of ½: 2·TP/(2·TP + FP + FN); 0 if there is no TP.
func F1(probability []float64, labels []bool) float64 {
	hits, wrong := 0, 0
	for i, p := range probability {
		switch said := p > 0.5; {
		case said && labels[i]:
			hits++
		case said != labels[i]:
			wrong++
		}
	}
	if hits == 0 {
		return 0
	}
	return 2 * float64(hits) / float64(2*hits+wrong)
}

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
func crossValidate(own Labelled, synthetic [][]float64, seed uint64) (out [arms]placements, err error) {
	scarce, other := own.Count()
	folds := min(maxFolds, scarce, other)
	for a := range out {
		out[a] = make(placements, len(own.Rows))
	}
	for repeat := range uint64(repeats) {
		fold := partition(own.Labels, folds, rand.New(rand.NewPCG(seed, repeat)))
		for f := range folds {
			train := own.pick(func(i int) bool { return fold[i] != f })
			test := own.pick(func(i int) bool { return fold[i] == f })
			for a := range arms {
				rng := rand.New(rand.NewPCG(seed, 1<<32|repeat<<16|uint64(f)<<8|uint64(a)))
				c, err := a.fit(train, synthetic, rng)
				if err != nil {
					return out, err
				}
				p, err := c.Probability(test.Rows)
				if err != nil {
					return out, err
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
