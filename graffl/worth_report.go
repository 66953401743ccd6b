package graffl

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"

	"parley/augment"
	"parley/dataset"
	"parley/figure"
	"parley/method"
)

// reportWorth adds to a site's own report what synthetic rows are worth there, the rows if
// they are kept, and the classifier to use.
func (h *site) reportWorth(ctx context.Context, r *method.Result, share *worthShare, data dataset.Source) error {
	w, err := h.compare(ctx, share, data)
	if err != nil {
		return err
	}
	class := h.class()
	if w == nil {
		r.Headline = append(r.Headline, figure.Fact{Name: "synthetic rows", Value: "not tried: no subject here is known not to be " + class})
		return nil
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "subjects of " + class, Value: fmt.Sprintf("%d, and %d others, to learn from", w.Scarce, w.Other)},
		figure.Fact{Name: "synthetic rows", Value: string(w.Verdict)})
	w.answer().metrics("", r.Metrics)
	section := figure.Section{ID: "worth", Title: "What synthetic rows are worth here",
		Lead:  fmt.Sprintf("The mixture of all sites' subjects of %s can make rows of that class. Whether they help a classifier at this site was tried next to what the site can do without them. All of this was made at this site; it does not leave.", class),
		Items: []figure.Item{{Note: &figure.Note{Title: verdictTitle(w.Verdict), Text: capital(w.Reason) + "."}}, {Table: h.armsTable(w)}}}
	if w.held > 0 && w.heldScarce < fewHeld {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Few held subjects of the class",
			Text: fmt.Sprintf("Scores on held rows rest on %d subjects of %s: by chance alone an AUC may be off by %.2f.", w.heldScarce, class, aucError(w.heldScarce, w.held-w.heldScarce))}})
	}
	r.Sections = append(r.Sections, section)
	if len(w.Synthetic) > 0 {
		file, err := h.syntheticCSV(w)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, file)
	}
	if w.Classifier == nil {
		return nil
	}
	file, err := h.classifierFile(w)
	if err != nil {
		return err
	}
	r.Files = append(r.Files, file)
	return nil
}

// class is the scarce class in words.
func (s *setup) class() string { return s.opts.Scarce.Outcome.Column + " " + s.opts.Scarce.Class }

// fewHeld is a number of held subjects of the class below which scores on them are rough.
const fewHeld = 30

// aucError is the standard error of an AUC of ½, the largest that one of m and n rows can
// have by much: √((m + n + 1)/(12 m n)) (Mann and Whitney 1947).
func aucError(m, n int) float64 {
	if m == 0 || n == 0 {
		return 0.5
	}
	return min(0.5, math.Sqrt(float64(m+n+1)/float64(12*m*n)))
}

func verdictTitle(v augment.Verdict) string {
	if v == augment.Kept {
		return "Synthetic rows are kept"
	}
	return "Synthetic rows are not kept: the site stays as it was"
}

// armsTable lists what may be done about the class, and how it did.
func (h *site) armsTable(w *worth) *figure.Table {
	var names []string
	var added, validated, auc, f1, score figure.Numbers
	for _, r := range w.Results {
		name := string(r.Arm)
		if r.Arm == augment.Borrowed && w.from != "" {
			name = "the classifier of site " + w.from
		}
		names, added = append(names, name), append(added, float64(r.Added))
		validated = append(validated, number(r.AUC))
		held := augment.HeldScore{}
		f := math.NaN()
		if r.Held != nil {
			held, f = *r.Held, r.Held.F1
		}
		auc, f1, score = append(auc, number(held.AUC)), append(f1, f), append(score, number(held.LogScore))
	}
	caption := fmt.Sprintf("Cross-validated on the %d subjects that could be learned from: what decides about synthetic rows. The rest on %d held subjects, %d of them of the class, that no site learned anything from: the honest test. The AUC does not depend on a cut-off; F1 at ½ is mostly the cut-off, so that anything that levels the classes raises it. The log score is the mean of ln P in nats, at most 0.", w.Scarce+w.Other, w.held, w.heldScarce)
	if h.trains() && (!h.opts.Encoder.Shared || h.opts.Encoder.Site == h.name) {
		caption += " The encoder was trained on the subjects that could be learned from, so that what is cross-validated is too high here, for all alike."
	}
	return &figure.Table{ID: "arms", Title: "What a site may do about a scarce class", Caption: caption,
		Columns: []figure.Column{{Name: "what is done", Text: names}, {Name: "rows added", Format: figure.Count, Numbers: added}, {Name: "AUC, cross-validated", Numbers: validated},
			{Name: "AUC, held", Numbers: auc}, {Name: "F1, held", Numbers: f1}, {Name: "log score, held", Numbers: score}}}
}

// number is a value, or NaN for none, which reports leave empty.
func number(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return string(bytes.ToUpper([]byte(s[:1]))) + s[1:]
}

// syntheticCSV writes the rows that were kept, in the features' own units or as codes, with
// the class.
func (h *site) syntheticCSV(w *worth) (method.File, error) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	if err := out.Write(append(append([]string{}, h.names...), h.opts.Scarce.Outcome.Column)); err != nil {
		return method.File{}, err
	}
	in := h.units()
	for _, u := range w.Synthetic {
		var line []string
		for _, x := range fromUnits(in, u) {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		if err := out.Write(append(line, h.opts.Scarce.Class)); err != nil {
			return method.File{}, err
		}
	}
	out.Flush()
	return method.File{Name: "synthetic.csv", Data: b.Bytes()}, out.Error()
}

// metrics adds the numbers of an answer, each name after a prefix.
func (a *worthAnswer) metrics(prefix string, to map[string]float64) {
	if a.Verdict == "" {
		return
	}
	to[prefix+"rows_of_class"], to[prefix+"other_rows"] = float64(a.Scarce), float64(a.Other)
	to[prefix+"held_rows_of_class"], to[prefix+"held_rows"] = float64(a.HeldScarce), float64(a.Held)
	to[prefix+"kept"] = 0
	if a.Verdict == augment.Kept {
		to[prefix+"kept"] = 1
	}
	for _, r := range a.Arms {
		add := func(name string, x *float64) {
			if x != nil {
				to[prefix+name+"/"+string(r.Arm)] = *x
			}
		}
		add("cross_validated_auc", r.AUC)
		if r.Held != nil {
			add("auc", r.Held.AUC)
			add("f1", &r.Held.F1)
			add("log_score", r.Held.LogScore)
		}
	}
}
