package scarce

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"

	"parley/dataset"
	"parley/figure"
	"parley/method"
)

// reportWorth adds to a site's own report what synthetic rows are worth there, the rows if
// they are kept, and the classifier to use.
func (h half) reportWorth(ctx context.Context, r *method.Result, share *worthShare, data dataset.Source) error {
	w, err := h.compare(ctx, share, data)
	if err != nil {
		return err
	}
	class := h.Class()
	if w == nil {
		r.Headline = append(r.Headline, figure.Fact{Name: "synthetic rows", Value: "not tried: no subject here is known not to be " + class})
		return nil
	}
	r.Headline = append(r.Headline, figure.Fact{Name: "to learn from, of " + class, Value: fmt.Sprintf("%d of %d", w.Scarce, w.Scarce+w.Other)},
		figure.Fact{Name: "synthetic rows", Value: string(w.Verdict)})
	w.answer().metrics("", r.Metrics)
	section := figure.Section{ID: "worth", Title: "What synthetic rows are worth here",
		Lead:  fmt.Sprintf("The mixture of all sites' subjects of %s can make rows of that class. Whether they help a classifier at this site was tried next to what the site can do without them. All of this was made at this site; it does not leave.", class),
		Items: []figure.Item{{Note: &figure.Note{Title: verdictTitle(w.Verdict), Text: capital(w.Reason) + "."}}}}
	if f := aucFigure([]string{h.Name}, []*worthAnswer{w.answer()}); f != nil {
		section.Items = append(section.Items, figure.Item{Figure: f})
	}
	section.Items = append(section.Items, figure.Item{Table: h.armsTable(w)})
	if w.held > 0 && w.heldScarce < fewHeld {
		section.Items = append(section.Items, figure.Item{Note: &figure.Note{Warning: true, Title: "Few held-out subjects of the class",
			Text: fmt.Sprintf("Scores on held rows rest on %d subjects of %s: by chance alone an AUC near 0.8 may be off by %.2f.", w.heldScarce, class, aucError(0.8, w.heldScarce, w.held-w.heldScarce))}})
	}
	r.Sections = slices.Insert(r.Sections, 0, section)
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

// fewHeld is a number of held subjects of the class below which scores on them are rough.
const fewHeld = 30

// aucError is the standard error of an AUC that m rows of the class and n others gave
// (Hanley and McNeil 1982).
func aucError(auc float64, m, n int) float64 {
	if m == 0 || n == 0 {
		return 0.5
	}
	one, two, square := auc/(2-auc), 2*auc*auc/(1+auc), auc*auc
	v := auc*(1-auc) + float64(m-1)*(one-square) + float64(n-1)*(two-square)
	return math.Sqrt(max(0, v) / (float64(m) * float64(n)))
}

// aucFigure compares the AUC of every arm on held rows, site by site.
func aucFigure(sites []string, answers []*worthAnswer) *figure.Figure {
	const z90 = 1.6448536269514722
	bars := figure.Bars{X: figure.Axis{Label: "AUC on held rows"}, Mark: "raw: the site's own rows, with nothing done"}
	for k, a := range answers {
		alone := math.NaN()
		for _, r := range a.Arms {
			if r.Held == nil || r.Held.AUC == nil {
				continue
			}
			auc := *r.Held.AUC
			if r.Arm == Raw {
				alone = auc
			}
			wide := z90 * aucError(auc, a.HeldScarce, a.Held-a.HeldScarce)
			bars.Labels, bars.Groups = append(bars.Labels, sites[k]), append(bars.Groups, armNames[r.Arm])
			bars.Values, bars.Marks = append(bars.Values, auc), append(bars.Marks, alone)
			bars.Low, bars.High = append(bars.Low, max(0, auc-wide)), append(bars.High, min(1, auc+wide))
		}
	}
	if len(bars.Values) == 0 {
		return nil
	}
	return &figure.Figure{ID: "remedies", Title: "How well each remedy tells the class apart", Chart: bars,
		Caption: "Further to the right is better; 0.5 is a coin. Whiskers hold 90 %, each for itself. All remedies at a site are judged on the same rows, so that differences between them are surer than the whiskers say. “Another site's” is the classifier of the other site with most rows of the class, as it is.",
		Alt:     "For each site the area under the curve of every remedy on held rows, with its interval and that of the site's own rows alone."}
}

// armNames are short ones, for pictures.
var armNames = map[Arm]string{Raw: "raw", Oversampled: "oversampling", SMOTEd: "SMOTE", Generated: "synthetic rows", Borrowed: "another site's"}

func verdictTitle(v verdict) string {
	if v == Kept {
		return "Synthetic rows are kept"
	}
	return "Synthetic rows are not kept: the site stays as it was"
}

// armsTable lists what may be done about the class, and how it did.
func (h half) armsTable(w *classifierComparison) *figure.Table {
	var names []string
	var added, validated, auc, f1, score figure.Numbers
	for _, r := range w.Results {
		name := string(r.Arm)
		if r.Arm == Borrowed && w.from != "" {
			name = "the classifier of site " + w.from
		}
		names, added = append(names, name), append(added, float64(r.Added))
		validated = append(validated, number(r.AUC))
		held := heldScore{}
		f := math.NaN()
		if r.Held != nil {
			held, f = *r.Held, r.Held.F1
		}
		auc, f1, score = append(auc, number(held.AUC)), append(f1, f), append(score, number(held.LogScore))
	}
	caption := fmt.Sprintf("Cross-validated on the %d subjects that could be learned from: what decides about synthetic rows. The rest on %d held subjects, %d of them of the class, that no site learned anything from: the honest test. The AUC does not depend on a cut-off; F1 at ½ is mostly the cut-off, so that anything that levels the classes raises it. The log score is the mean of ln P in nats, at most 0.", w.Scarce+w.Other, w.held, w.heldScarce)
	if h.Trains() && (!h.Options.Encoder.Shared || h.Options.Encoder.Site == h.Name) {
		caption += " The encoder was trained on the subjects that could be learned from, so that what is cross-validated is too high here, for all alike."
	}
	return &figure.Table{ID: "arms", Title: "What a site may do about a scarce class", Caption: caption,
		Columns: []figure.Column{{Name: "what is done", Text: names}, {Name: "rows added", Format: figure.Count, Numbers: added}, {Name: "AUC, cross-validated", Format: figure.Score, Numbers: validated},
			{Name: "AUC, held", Format: figure.Score, Numbers: auc}, {Name: "F1, held", Format: figure.Score, Numbers: f1}, {Name: "log score, held", Format: figure.Score, Numbers: score}}}
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
func (h half) syntheticCSV(w *classifierComparison) (method.File, error) {
	var b bytes.Buffer
	out := csv.NewWriter(&b)
	if err := out.Write(append(append([]string{}, h.Names...), h.Options.Scarce.Outcome.Column)); err != nil {
		return method.File{}, err
	}
	in := unitsOf(h.Setup)
	for _, u := range w.Synthetic {
		var line []string
		for _, x := range fromUnits(in, u) {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		if err := out.Write(append(line, h.Options.Scarce.Class)); err != nil {
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
	if a.Verdict == Kept {
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
