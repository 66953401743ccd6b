package mixture

import (
	"context"
	"fmt"

	"parley/dataset"
	"parley/methods/mixture/options"
	"parley/methods/mixture/sketch"
	"parley/problem"
	"parley/study"
)

// Notes implements [method.Noter]: which variant a plan has that does not name it but has landmarks,
// what plans give away that are not private, and what variants that are there to compare with do.
func (Method) Notes(p *study.Plan) (notes problem.List) {
	o, ok := p.Method.Options.(*options.Options)
	if !ok {
		return nil
	}
	row := "row"
	if o.Encoder != nil {
		row = "row's code"
	}
	if o.ByLandmarks {
		notes.Add(problem.Problem{Where: "method.variant", What: fmt.Sprintf("landmark, because the plan has landmarks: without them, %d features would have variant: sketch", o.Dim(p)),
			Hint: "say variant: landmark if you mean it; of three features or more, hardly a landmark lies where rows are"})
	}
	switch o.Variant {
	case options.VariantLandmark:
		if p.Privacy.Differential() {
			break
		}
		if l, err := o.PlaceLandmarks(p); err == nil {
			notes.Add(problem.Problem{Where: "privacy", What: fmt.Sprintf("without noise, landmarks give away every %s of a site with up to %d of them, and whoever joins or leaves between two studies", row, l.Len()/l.Dim),
				Hint: "protection: differential for data of persons; else sites with ten times as many rows, or more"})
		}
	case options.VariantSketch:
		noteSketch(p, o, row, &notes)
	case options.VariantPublished:
		notes.Add(problem.Problem{Where: "method.variant", What: fmt.Sprintf("published gives every %s away, by %d exact distances to known points, and what it accepts does not become the posterior", row, o.Dim(p)+1),
			Hint: "it is there to compare with; variant: landmark for data of persons"})
	case options.VariantSet:
		notes.Add(problem.Problem{Where: "method.variant", What: fmt.Sprintf("set releases up to %d exact means over each site's rows, which tell of single rows, and its intervals are not to be relied on", o.Set.Proposals),
			Hint: "variant: landmark for data of persons"})
	}
	return notes
}

// CheckData implements [method.DataChecker].
func (Method) CheckData(ctx context.Context, p *study.Plan, rows dataset.Source) (notes problem.List, err error) {
	s, err := options.New(p)
	if err != nil || s.Options.Encoder != nil {
		return nil, err // an encoder fills in
	}
	lacking, all, err := s.Lacking(ctx, rows)
	if lacking > 0 {
		notes.Add(problem.Problem{Where: "subjects", What: fmt.Sprintf("%d of %d lack a feature and take no part", lacking, all),
			Hint: "where that goes with the component that they belong to, the mixture is wrong by it; leave out of the plan what many lack"})
	}
	return notes, err
}

// noteSketch says of how many rows the components of a plan can be told apart, and what
// is given away without noise.
func noteSketch(p *study.Plan, o *options.Options, row string, notes *problem.List) {
	if !p.Privacy.Differential() {
		notes.Add(problem.Problem{Where: "privacy", What: fmt.Sprintf("without noise, sums at frequencies may give away every %s of a site with up to %d of them, and whoever joins or leaves between two studies", row, 2*o.Sketch.Frequencies/o.Dim(p)),
			Hint: "protection: differential for data of persons; else sites with ten times as many rows, or more"})
	}
	if o.Sketch.Rows > 0 {
		return // refused if they are too few
	}
	found, precise, err := o.RowsNeeded(p)
	if err != nil {
		return // which the plan says already
	}
	if o.Components == 1 {
		notes.Add(problem.Problem{Where: "method.components", What: fmt.Sprintf("the mean of one component in %d dimensions is at most %v times as uncertain as all rows leave it from about %s complete rows of all sites together on: with fewer, the report says so", o.Dim(p), sketch.Precise, options.RowsText(precise)),
			Hint: "if there may be fewer, take fewer features or a larger ε; with sketch.rows, how many there are at least, a plan that needs more is refused"})
		return
	}
	notes.Add(problem.Problem{Where: "method.components", What: fmt.Sprintf("%d components in %d dimensions, four standard deviations apart and the smallest half as large as the largest, can be told from each other with about %s complete rows of all sites together. Their means are at most %v times as uncertain as such rows leave them from about %s on: with fewer, the report says so", o.Components, o.Dim(p), options.RowsText(found), sketch.Precise, options.RowsText(precise)),
		Hint: "if there may be fewer, take fewer features or components, or a larger ε; with sketch.rows, how many there are at least, a plan that needs more is refused"})
}

// Describe implements [method.Describer].
func (Method) Describe(p *study.Plan) string {
	s, v, err := setupOf(p)
	if err != nil {
		return ""
	}
	o := s.Options
	groups, rows, of := fmt.Sprintf("%d groups (normal components)", o.Components), "the rows", fmt.Sprintf("%d features", len(s.Names))
	if o.Components == 1 {
		groups = "one group (normal component)"
	}
	if o.Scarce != nil {
		rows = fmt.Sprintf("the rows of class %s of column %s", o.Scarce.Class, o.Scarce.Outcome.Column)
	}
	if o.Encoder != nil {
		encoder := "an encoder"
		if o.Encoder.Kind == options.EncoderSuffiAE {
			encoder += ", trained on rows without noise,"
		}
		of = fmt.Sprintf("%d numbers that %s makes of each row", len(s.Names), encoder)
	}
	text := fmt.Sprintf("It describes %s as a mixture of %s in %s: how large, where and how wide each is.", rows, groups, of)
	return text + " " + v.Tells(s)
}
