package fitted

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"parley/dataset"
	"parley/figure"
	"parley/methods/mixture/gmm"
	"parley/problem"
	"parley/study"
)

// Name is what plans call the method.
const Name = "mixture"

// Setup is what both halves of a study of mixtures know from the plan.
type Setup struct {
	Plan   *study.Plan
	Names  []string  // of the features
	Lo, Hi []float64 // the public box
	Prior  gmm.Prior
}

// NewSetup works it out from a plan that has been checked, and the prior that it has of its box.
func NewSetup(p *study.Plan, prior gmm.Prior) *Setup {
	s := &Setup{Plan: p, Prior: prior}
	s.Names, s.Lo, s.Hi = Box(p)
	return s
}

const (
	// MaxDraws is the most parameters that a sample may have.
	MaxDraws = 10_000
	// MaxNumbers is how many numbers a sample may have, so that it fits into a state, and a
	// batch of proposals into a message.
	MaxNumbers = 1 << 23
	// MaxRows is a number of rows that no site has.
	MaxRows = 1 << 31
	// RowsReleased is what is said of the number that a site adds to its answer.
	RowsReleased = "number of rows that have all features"
)

// Features counts the features of a plan.
func Features(p *study.Plan) (d int) {
	for _, v := range p.Views {
		d += len(v.Features)
	}
	return d
}

// Check holds what is of any mixture against the plan. The sample has so many draws, which
// the plan says under a key. It returns whether there is a box that a prior can be made of.
func Check(p *study.Plan, components, draws int, key string, report study.Report) (ready bool) {
	few := components >= 1 && components <= gmm.MaxComponents
	if !few {
		report("components", fmt.Sprintf("a mixture of %d components", components),
			fmt.Sprintf("from 1 to %d; it has no default", gmm.MaxComponents))
	}
	if !checkFeatures(p, report) || !few {
		return false
	}
	d := Features(p)
	if each := components * (1 + d + d*d); draws > MaxNumbers/each {
		report(key, fmt.Sprintf("%d mixtures of %d components in %d dimensions are %d numbers each, more than %d "+
			"together", draws, components, d, each, MaxNumbers),
			"fewer of them, fewer components, or fewer features")
	}
	_, lo, hi := Box(p)
	if _, err := gmm.BoxPrior(lo, hi, components); err != nil {
		report("", err.Error(), "ranges of features that are neither as wide nor as narrow")
		return false
	}
	return true
}

// checkFeatures wants a public range of every number that a box is made of.
func checkFeatures(p *study.Plan, report study.Report) bool {
	ok := true
	if d := Features(p); d > gmm.MaxDim {
		report("", fmt.Sprintf("%d features are too many for a mixture with full covariances", d),
			fmt.Sprintf("at most %d, and few are better", gmm.MaxDim))
		ok = false
	}
	var without []string
	for k, v := range p.Views {
		for j, f := range v.Features {
			switch {
			case f.Kind == study.Category:
				report(fmt.Sprintf("views[%d].features[%d]", k, j),
					f.Name+" is a category, and a Gaussian mixture is of numbers", "leave it out of the views")
				ok = false
			case f.Range == nil:
				without = append(without, f.Name)
			case !(f.Range[0] < f.Range[1]):
				ok = false // which the plan says already: nothing follows from such a range
			}
		}
	}
	if without != nil {
		report("", "features without a range, which the prior and the frequencies are of: "+problem.Names(without),
			fmt.Sprintf("{name: %s, range: [lowest, highest]} from what is publicly known", without[0]))
		ok = false
	}
	return ok
}

// Box returns the public ranges of all features.
func Box(p *study.Plan) (names []string, lo, hi []float64) {
	for _, v := range p.Views {
		for _, f := range v.Features {
			names, lo, hi = append(names, f.Name), append(lo, f.Range[0]), append(hi, f.Range[1])
		}
	}
	return names, lo, hi
}

// SeedOf is the seed that a purpose has from the plan.
func SeedOf(p *study.Plan, purpose string) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "graffl %d %s", p.Seed, purpose))
	return binary.LittleEndian.Uint64(sum[:])
}

// ErrNoRows is that of a study whose sites have nothing that the mixture is of.
var ErrNoRows = errors.New("no site has a row with all features")

// CheckData counts those who lack a feature, as [method.DataChecker] has it.
func (s *Setup) CheckData(ctx context.Context, rows dataset.Source) (notes problem.List, err error) {
	x := make([]float64, len(s.Names))
	lacking, all := 0, 0
	for row, err := range rows.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		if all++; !Complete(row, x) {
			lacking++
		}
	}
	if lacking > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d lack a feature and take no part",
			lacking, all),
			Hint: "where that goes with the component that they belong to, the mixture is wrong by it; leave out of " +
				"the plan what many lack"})
	}
	return notes, ctx.Err()
}

// Describe says what is described, and by what.
func (s *Setup) Describe() string {
	return fmt.Sprintf("It describes the rows as a mixture of %s in %d features: how large, where and how wide each "+
		"is.", figure.Plural(s.Prior.Components(), "normal component"), len(s.Names))
}

// Widths are how many features each view has.
func (s *Setup) Widths() (widths []int) {
	for _, v := range s.Plan.Views {
		widths = append(widths, len(v.Features))
	}
	return widths
}

// observed returns the values of views of some widths in a row, NaN where there are none.
func observed(row *dataset.Row, widths []int) (x []float64) {
	for k, n := range widths {
		if view := row.Views[k]; view != nil {
			x = append(x, view...)
			continue
		}
		for range n {
			x = append(x, math.NaN())
		}
	}
	return x
}

// Complete writes a row's features in their order; false if one is missing or not finite. Such a row takes no part.
func Complete(row *dataset.Row, x []float64) bool {
	n := 0
	for _, view := range row.Views {
		n += copy(x[n:], view)
	}
	return n == len(x) && gmm.NotFinite(x) < 0
}
