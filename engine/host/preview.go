package host

import (
	"context"
	"errors"
	"fmt"

	"parley/dataset"
	"parley/method"
	"parley/privacy"
	"parley/privacy/ledger"
	"parley/problem"
	"parley/study"
)

// Preview is what a study would mean for a site, before anything is agreed to.
// It is for the site's own people: it tells of their data.
type Preview struct {
	Study       string           `json:"study"` // hexadecimal digest of the plan
	Name        string           `json:"name"`
	Question    string           `json:"question,omitempty"`
	Coordinator string           `json:"coordinator,omitempty"` // who asks; the caller fills it in
	Sites       []string         `json:"sites"`
	Quorum      int              `json:"quorum"`
	Site        string           `json:"site"`
	Method      string           `json:"method"`
	Revision    int              `json:"revision"`
	Describes   string           `json:"describes,omitempty"` // what the method computes; empty if it does not say
	Views       []previewView    `json:"views"`               // of the plan
	Columns     []string         `json:"columns,omitempty"`   // of the subjects table, that the plan names
	Subjects    int              `json:"subjects"`            // 0 if there are problems
	Requests    []privacy.Listed `json:"requests"`            // everything that the gate would grant
	Numbers     int              `json:"numbers"`             // that leave at most, in all releases together
	Bytes       int              `json:"bytes"`               // of these numbers
	Promise     []string         `json:"promise"`             // of the plan, in words
	// of a secure sum: who would have to work together to see this site's own
	Secure []string `json:"secure,omitempty"`
	// of its sites, by name: short fingerprints, for comparing by another way
	Keys    []string      `json:"keys,omitempty"`
	Charges int           `json:"charges"` // in the ledger so far, of all studies
	Spent   []ledger.Loss `json:"spent"`   // by their noised sums, for one subject
	// whether policy and ledger let it take part, and what that costs
	Admission *ledger.Admission `json:"admission"`
	Problems  []string          `json:"problems,omitempty"` // for which the data cannot be used
	Notes     []string          `json:"notes,omitempty"`    // on plan and data, that prevent nothing
	TakesPart bool              `json:"takes_part"`         // policy, ledger and data allow it
}

// previewView is a view of the plan at the site.
type previewView struct {
	study.View
	Subjects int `json:"subjects"` // who have it here
}

// Preview says what a study would mean here. It keeps and charges nothing. What
// is wrong with the data is part of it, and no error.
func (h *Host) Preview(ctx context.Context, p *study.Plan) (*Preview, error) {
	m, s, err := h.planned(p)
	if err != nil {
		return nil, err
	}
	out := &Preview{
		Study: s.Digest, Name: p.Name, Question: p.Question, Sites: p.Sites, Quorum: p.Quorum, Site: h.Site,
		Method: m.Name(), Revision: m.Revision(),
		Columns: p.Subjects, Requests: s.Requests, Numbers: ledger.All(s.Requests, ledger.NumbersOf),
		Bytes: ledger.All(s.Requests, ledger.BytesOf),
	}
	if d, ok := m.(method.Describer); ok {
		out.Describes = d.Describe(p)
	}
	for _, v := range p.Views {
		out.Views = append(out.Views, previewView{View: v})
	}
	cost, err := h.Methods.Cost(p)
	if err != nil {
		return nil, err
	}
	if s.Subjects, err = h.look(ctx, out, p, cost, s.Noised()); err != nil {
		return nil, err
	}
	out.Subjects = s.Subjects
	out.Promise, out.Secure, out.Keys = cost.Lines(), method.SecureLines(p), method.Fingerprints(p)
	charged, err := ledger.Read(h.Store)
	if err != nil {
		return nil, err
	}
	past, err := charged.Account(cost.Delta())
	if err != nil {
		return nil, err
	}
	out.Charges, out.Spent = past.Charges, past.Lifetime
	if out.Admission, err = h.Admits(charged, p, s, h.Policy, cost); err != nil {
		return nil, err
	}
	notes, err := h.Methods.Notes(p)
	out.Notes = append(out.Notes, notes.Lines()...)
	out.TakesPart = out.Admission.Admitted && len(out.Problems) == 0
	return out, err
}

// look puts into a preview what the data tell, or what is wrong with them. Of data without
// faults it counts who takes part as the study will read them: where all is noised, a record is
// a line, and a cell that holds a line break spoils its own.
func (h *Host) look(ctx context.Context, out *Preview, p *study.Plan, cost *ledger.Cost,
	noised bool) (subjects int, err error) {
	if d, ok := h.Data.(interface{ Warnings() problem.List }); ok {
		out.Notes = d.Warnings().Lines()
	}
	if d, ok := h.Data.(interface{ Mapped() []string }); ok {
		out.Notes = append(out.Notes, d.Mapped()...)
	}
	c, err := h.census(ctx)
	list := problem.List(nil)
	switch {
	case errors.As(err, &list):
		out.Problems = list.Lines()
	case errors.Is(err, errNoData):
		out.Problems = []string{err.Error()}
	case err != nil:
		return 0, err
	default:
		if err := h.notes(ctx, out, cost); err != nil {
			return 0, err
		}
		if d, ok := h.Data.(*dataset.Dir); ok && noised && len(out.Problems) == 0 {
			if c, err = dataset.Count(ctx, d.Tolerant()); err != nil {
				return 0, err
			}
			if err := h.uncounted(ctx, out, p, d.Tolerant()); err != nil {
				return 0, err
			}
		}
		for k := range out.Views[:min(len(out.Views), len(c.Having))] {
			out.Views[k].Subjects = c.Having[k]
		}
		if d, ok := h.Data.(interface{ LeftOut() problem.List }); ok {
			out.Notes = append(out.Notes, d.LeftOut().Lines()...)
		}
		return c.Subjects, nil
	}
	return 0, nil
}

// uncounted says how many subjects would count for nothing, because they lack views that the plan states. It is for
// people to read, and decides nothing: whether a site approves a private study by itself must not follow from its rows.
func (h *Host) uncounted(ctx context.Context, out *Preview, p *study.Plan, data dataset.Source) error {
	m, _ := h.Methods.Lookup(p.Method.Name)
	selective, ok := m.(method.Selective)
	if !ok {
		return nil
	}
	counting, all := 0, 0
	for row, err := range data.Rows(ctx) {
		if err != nil {
			return err
		}
		counts, err := selective.Counts(method.HalfPlan(p), h.Site, row.Views)
		if err != nil {
			return err
		}
		if all++; counts {
			counting++
		}
	}
	if counting < all {
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d subjects here would count: the others lack views, and the "+
			"plan's method.patterns do not say that subjects of this site may", counting, all))
	}
	return nil
}

// notes puts into a preview what makes a person look at the data again.
func (h *Host) notes(ctx context.Context, out *Preview, cost *ledger.Cost) error {
	if h.Data == nil {
		return nil
	}
	seen, err := h.describe(ctx, cost)
	if list := (problem.List)(nil); errors.As(err, &list) {
		out.Problems = list.Lines()
		return nil
	}
	if err != nil {
		return err
	}
	out.Notes = append(out.Notes, seen.Warnings().Lines()...)
	return nil
}
