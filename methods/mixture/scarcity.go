package mixture

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture/gmm"
	"parley/methods/mixture/scarce"
)

// maxShared is how many draws of the posterior sites get to make rows of; fewer where
// they are more than so many numbers.
const (
	maxShared        = 256
	maxSharedNumbers = 1 << 21
)

// scarceReport adds to a site's own report what rows of the scarce class, drawn from the mixture of all sites, are
// worth there, judged on rows that nothing was learned from; and the rows, if they are kept. It never leaves.
func (h half) scarceReport(ctx context.Context, r *method.Result, p *gmm.Posterior, data dataset.Source) error {
	own, held, err := h.labelled(ctx, data)
	if err != nil {
		return err
	}
	few, other := own.Count()
	if few+other == 0 {
		r.Headline = append(r.Headline, figure.Fact{Name: "synthetic rows", Value: "not tried: no subject here is known to be of " + h.Class() + " or not"})
		return nil
	}
	made, err := h.generate(p, max(other-few, 1))
	if err != nil {
		return err
	}
	c, err := scarce.Compare(own, held, made, h.Seed(fmt.Sprintf("arms %q", h.Name)))
	if err != nil {
		return err
	}
	heldFew, heldOther := held.Count()
	kept, word, title := 0.0, "not kept", "Synthetic rows are not kept: the site stays as it was"
	if c.Kept {
		kept, word, title = 1, "kept", "Synthetic rows are kept"
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "to learn from, of " + h.Class(), Value: fmt.Sprintf("%d of %d", few, few+other)},
		figure.Fact{Name: "synthetic rows", Value: word})
	m := r.Metrics
	m["rows_of_class"], m["other_rows"], m["held_rows_of_class"], m["held_rows"], m["kept"] = float64(few), float64(other), float64(heldFew), float64(heldFew+heldOther), kept
	var names []string
	var added, validated, auc, f1 figure.Numbers
	for _, x := range c.Results {
		names, added = append(names, string(x.Arm)), append(added, float64(x.Added))
		validated, auc, f1 = append(validated, x.Validated), append(auc, x.Held), append(f1, x.HeldF1)
		for name, v := range map[string]float64{"cross_validated_auc/": x.Validated, "auc/": x.Held, "f1/": x.HeldF1} {
			if !math.IsNaN(v) {
				m[name+string(x.Arm)] = v
			}
		}
	}
	section := figure.Section{ID: "worth", Title: "What synthetic rows are worth here",
		Lead: fmt.Sprintf("The mixture of all sites' subjects of %s can make rows of that class. Whether they help a classifier at this site was tried next to what the site can do alone: nothing, and drawing its own rows again. All of this was made at this site; it does not leave. A regression over all sites (method pvi) needs no synthetic rows, and has been better in every comparison.", h.Class()),
		Items: []figure.Item{{Note: &figure.Note{Title: title, Text: "By cross-validation, " + c.Reason + "."}},
			{Table: &figure.Table{ID: "arms", Title: "What a site may do about a scarce class",
				Caption: fmt.Sprintf("Cross-validated on the %d subjects that could be learned from: what decides about synthetic rows. The rest on %d held subjects, %d of them of the class, that no site learned anything from: the honest test. The AUC does not depend on a cut-off; F1 at ½ is mostly the cut-off, so that anything that levels the classes raises it.", few+other, heldFew+heldOther, heldFew),
				Columns: []figure.Column{{Name: "what is done", Text: names}, {Name: "rows added", Format: figure.Count, Numbers: added}, {Name: "AUC, cross-validated", Format: figure.Score, Numbers: validated},
					{Name: "AUC, held", Format: figure.Score, Numbers: auc}, {Name: "F1, held", Format: figure.Score, Numbers: f1}}}}}}
	if n := heldFew + heldOther; n > 0 && heldFew < fewHeld {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Few held-out subjects of the class",
			Text: fmt.Sprintf("Scores on held rows rest on %d subjects of %s: with 10 and 100 others the standard error of an AUC of .8 is .09.", heldFew, h.Class())}})
	}
	r.Sections = slices.Insert(r.Sections, 0, section)
	if len(c.Synthetic) == 0 {
		return nil
	}
	file, err := h.syntheticCSV(c.Synthetic)
	r.Files = append(r.Files, file)
	return err
}

// fewHeld is a number of held subjects of the class below which scores on them are rough.
const fewHeld = 30

// inUnits are the numbers of a row as classifiers see them: from −4 to 4 over the public ranges. Gross errors are
// moved to where sums of squares are finite.
func (h half) inUnits(x []float64) []float64 {
	u := make([]float64, len(x))
	for i, v := range x {
		width := h.Hi[i] - h.Lo[i]
		u[i] = min(max(8*(v-h.Lo[i]-width/2)/width, -1e9), 1e9)
	}
	return u
}

// labelled returns the subjects whose outcome is known, those that may be learned from and
// those that are held.
func (h half) labelled(ctx context.Context, data dataset.Source) (own, held scarce.Labelled, err error) {
	x := make([]float64, len(h.Names))
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return own, held, err
		}
		few, known := h.Known(row)
		if !known || !Complete(row, x) {
			continue
		}
		to := &own
		if h.Held(row.ID) {
			to = &held
		}
		to.Rows, to.Labels = append(to.Rows, h.inUnits(x)), append(to.Labels, few)
	}
	return own, held, ctx.Err()
}

// generate draws rows from the posterior predictive distribution: each from a draw of its
// own, so that what is not known of the mixture is in them.
func (h half) generate(p *gmm.Posterior, n int) ([][]float64, error) {
	seed := h.Seed(fmt.Sprintf("synthetic %q", h.Name))
	r := rand.New(rand.NewPCG(seed, gmm.SplitMix(seed)))
	rows, x := make([][]float64, n), make([]float64, len(h.Names))
	for i := range rows {
		if err := p.Draws[gmm.Pick(r, p.Weights)].Simulate(r, x); err != nil {
			return nil, fmt.Errorf("drawing synthetic rows: %w", err)
		}
		rows[i] = h.inUnits(x)
	}
	return rows, nil
}

// syntheticCSV writes the rows that were kept, in the features' own units, with the class.
func (h half) syntheticCSV(rows [][]float64) (method.File, error) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	if err := out.Write(append(slices.Clone(h.Names), h.Options.Scarce.Outcome.Column)); err != nil {
		return method.File{}, err
	}
	for _, u := range rows {
		var line []string
		for i, v := range u {
			width := h.Hi[i] - h.Lo[i]
			line = append(line, strconv.FormatFloat(h.Lo[i]+width/2+v*width/8, 'g', -1, 64))
		}
		if err := out.Write(append(line, h.Options.Scarce.Class)); err != nil {
			return method.File{}, err
		}
	}
	out.Flush()
	return method.File{Name: "synthetic.csv", Data: b.Bytes()}, out.Error()
}
