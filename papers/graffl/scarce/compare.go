package scarce

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/judge/evaluate"
)

// Arm is one thing that a site may do about its scarce class.
type Arm string

// The arms, in the order of [Comparison].
const (
	Raw         Arm = "raw"            // nothing
	Oversampled Arm = "oversampling"   // rows of the class drawn again: see [Oversample]
	Generated   Arm = "synthetic rows" // from a model of all sites
)

var arms = []Arm{Raw, Oversampled, Generated}

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

// fit returns an arm's classifier, fitted to rows and what the arm adds to them, and
// the latter: as many rows of the scarce class as bring it level with the other.
// Generated rows are drawn without replacement: if there are too few, all.
func (a Arm) fit(rows Labelled, generated [][]float64, rng *rand.Rand) (c *LinearClassifier, extra [][]float64, err error) {
	scarce, other := rows.Count()
	lacking := max(other-scarce, 0)
	switch a {
	case Oversampled:
		if scarce == 0 {
			return nil, nil, errOneClass
		}
		extra, err = Oversample(rows.pick(func(i int) bool { return rows.Labels[i] }).Rows, lacking, rng)
	case Generated:
		for _, i := range rng.Perm(len(generated))[:min(lacking, len(generated))] {
			extra = append(extra, generated[i])
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if scarce+len(extra) == 0 || other == 0 {
		return nil, nil, errOneClass
	}
	all := rows.With(extra)
	c, err = FitLinear(all.Rows, all.Labels, Penalty)
	return c, extra, err
}

// Result is what became of one arm: NaN of what could not be judged.
type Result struct {
	Arm       Arm
	Added     int     // rows of the scarce class added to the site's own
	Validated float64 // AUC by cross-validation on the site's own rows
	Held      float64 // AUC on held rows, that nothing was learned from
	HeldF1    float64 // at ½: mostly the cut-off, so that whatever levels the classes raises it
	Problem   string  // why the arm could not be fitted
}

// minJudged is the number of own rows of each class below which no verdict on
// synthetic rows is given: they are not kept.
const minJudged = 5

// verdictLevel is the chance that a gain of nothing but chance passes: the level of
// a one-sided t test, with the degrees of freedom of the smaller class.
const verdictLevel = 0.1

// Comparison is all arms at one site, and whether it should keep the synthetic rows.
type Comparison struct {
	Scarce, Other int // own rows of each label
	Results       []Result
	Kept          bool
	Reason        string // the verdict in a sentence, with its numbers
	// Classifier is the one to use: with synthetic rows if they are kept, else that of the own rows alone. Nil
	// if the own rows have one class only.
	Classifier *LinearClassifier
	Synthetic  [][]float64 // that were kept
}

// Compare tries every arm on a site's own rows and scores it on held rows, which may
// be none. generated are synthetic rows of the scarce class.
//
// The verdict is a test: synthetic rows are kept only if they raise the AUC of repeated
// stratified cross-validation on the own rows beyond chance (a one-sided t test at
// the level 10 %), to no less than oversampling reaches. Held rows have no
// part in it. The criterion is the AUC because adding rows moves the share of the
// class, which the AUC does not see and every score of probabilities does. The
// generator has seen the rows that it is judged on, as a few of all sites' rows; where
// a site has most rows of the class, the test is too kind. Experiment parley-verdict
// has how often it keeps what helps, and what does not.
//
// The result follows from its arguments to the last bit. Errors are rows of several
// widths, entries that are not finite, and labels that are not as many as rows.
func Compare(own, held Labelled, generated [][]float64, seed uint64) (*Comparison, error) {
	if err := checkComparison(own, held, generated); err != nil {
		return nil, fmt.Errorf("comparing what helps a scarce class: %w", err)
	}
	c := new(Comparison)
	c.Scarce, c.Other = own.Count()
	var validated map[Arm]placements
	if min(c.Scarce, c.Other) >= minJudged {
		var err error
		if validated, err = crossValidate(own, generated, seed); err != nil {
			return nil, err
		}
	}
	c.judge(validated, own.Labels, len(generated))
	for at, a := range arms {
		r := Result{Arm: a, Validated: math.NaN(), Held: math.NaN(), HeldF1: math.NaN()}
		if p := validated[a]; p != nil {
			r.Validated = p.auc(own.Labels)
		}
		fitted, extra, err := a.fit(own, generated, rand.New(rand.NewPCG(seed, 1<<40|uint64(at))))
		if err != nil { // one class only, or values too large to add up
			r.Problem = err.Error()
			c.Results = append(c.Results, r)
			continue
		}
		r.Added = len(extra)
		if a == Raw && !c.Kept || a == Generated && c.Kept {
			c.Classifier, c.Synthetic = fitted, extra
		}
		if len(held.Rows) > 0 {
			p, err := fitted.Probability(held.Rows)
			if err != nil {
				return nil, err
			}
			r.Held, r.HeldF1 = evaluate.AUC(p, held.Labels), F1(p, held.Labels)
		}
		c.Results = append(c.Results, r)
	}
	return c, nil
}

func checkComparison(own, held Labelled, generated [][]float64) error {
	if err := own.Check(); err != nil {
		return fmt.Errorf("own rows: %w", err)
	}
	if err := held.Check(); err != nil {
		return fmt.Errorf("held rows: %w", err)
	}
	if len(own.Rows) == 0 {
		return errors.New("own rows: there are none")
	}
	if len(held.Rows) > 0 && held.width() != own.width() {
		return fmt.Errorf("held rows have %d columns, own rows %d", held.width(), own.width())
	}
	if err := checkRows(generated, own.width()); err != nil {
		return fmt.Errorf("synthetic rows: %w", err)
	}
	return nil
}

// judge decides on synthetic rows.
func (c *Comparison) judge(validated map[Arm]placements, labels []bool, generated int) {
	say := func(format string, a ...any) { c.Reason = fmt.Sprintf(format, a...) }
	switch {
	case c.Scarce >= c.Other:
		say("the class is not scarce here: %d rows of it and %d others", c.Scarce, c.Other)
		return
	case generated == 0:
		say("there are no synthetic rows to judge")
		return
	case validated == nil:
		say("that cannot be judged with %d rows of the class and %d others: at least %d of each are needed", c.Scarce, c.Other, minJudged)
		return
	}
	made := validated[Generated]
	gain, wrong := made.gain(validated[Raw], labels)
	numbers := fmt.Sprintf("cross-validated AUC %.3f with synthetic rows, %.3f without: gain %+.3f, standard error %.3f",
		made.auc(labels), validated[Raw].auc(labels), gain, wrong)
	t := distuv.StudentsT{Sigma: 1, Nu: float64(min(c.Scarce, c.Other) - 1)}.Quantile(1 - verdictLevel)
	switch other := validated[Oversampled].auc(labels); {
	case !(gain > t*wrong):
		say("%s, and a gain of %.2f standard errors is wanted", numbers, t)
	case other > made.auc(labels):
		say("%s; oversampling of the site's own rows reaches %.3f", numbers, other)
	default:
		c.Kept = true
		say("%s", numbers)
	}
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
