package mixture

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"testing"

	"parley/method"
	"parley/methods/mixture/report"
	"parley/study"
)

// liar is what site a says in place of an honest answer: one after the other, until
// the coordinator takes one. It tells the truth if that is nothing.
type liar func(step int, in method.Contribution) []method.Contribution

// honest is one that never lies.
func honest(int, method.Contribution) []method.Contribution { return nil }

// played is a study as it goes, with what the engine does and nothing else.
type played struct {
	c       method.Coordinator
	s       method.State
	refused int  // of what site a said
	taken   bool // something of it
}

// play runs a study whose site a lies, until nothing that it says in one step is taken,
// or to its end. An error says what went wrong without a lie, or after one was taken.
func play(t testing.TB, p *study.Plan, sites map[string]*gated, says liar) (*played, error) {
	t.Helper()
	c, err := Method{}.Coordinator(p)
	if err != nil {
		t.Fatal(err)
	}
	x := &played{c: c}
	if x.s, err = c.Init(); err != nil {
		t.Fatal(err)
	}
	for at := range 400 {
		step, err := c.Next(x.s)
		if err != nil {
			return x, fmt.Errorf("next: %w", err)
		}
		for name, v := range step.Info.All() {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return x, fmt.Errorf("info %q is %v", name, v)
			}
		}
		x.s = step.State
		if _, err := x.encoded(); err != nil {
			return x, err
		}
		if step.Done {
			return x, x.ending(t, p, sites)
		}
		for _, task := range step.Tasks {
			before, err := x.encoded()
			if err != nil {
				return x, err
			}
			in, err := sites[task.Site].answer(t, task)
			if err == nil {
				lies := []method.Contribution(nil)
				if task.Site == "a" {
					lies = says(at, in)
				}
				if len(lies) > 0 {
					if out, err := x.lie(before, lies); out || err != nil {
						return x, err
					}
					continue
				}
				if err = x.fold(in); err == nil {
					continue
				}
			}
			if !x.taken || task.Site != "a" {
				return x, fmt.Errorf("site %s, an honest answer to %q: %w", task.Site, task.Kind, err)
			}
			// It is found out: of an encoder, or of a number of rows, that is another than before.
			if x.s, err = c.Restore(before); err != nil {
				return x, err
			}
			if x.s, err = c.Leave(x.s, "a"); err != nil {
				return x, nil // and the study cannot go on without it
			}
		}
	}
	return x, fmt.Errorf("the study does not end")
}

// lie hands lies over until one is taken; out if none is.
func (x *played) lie(before []byte, lies []method.Contribution) (out bool, err error) {
	for _, in := range lies {
		if x.fold(in) == nil {
			x.taken = true
			_, err := x.encoded()
			return false, err
		}
		x.refused++
		if x.s, err = x.c.Restore(before); err != nil {
			return true, err
		}
	}
	return true, nil
}

func (x *played) fold(in method.Contribution) error {
	next, err := x.c.Fold(x.s, in)
	if err == nil {
		x.s = next
	}
	return err
}

// encoded is the state's encoding, from which it goes on.
func (x *played) encoded() ([]byte, error) {
	data, err := x.s.MarshalBinary()
	if err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	if x.s, err = x.c.Restore(data); err != nil {
		return nil, fmt.Errorf("restoring the state: %w", err)
	}
	if again, err := x.s.MarshalBinary(); err != nil || !bytes.Equal(data, again) {
		return nil, fmt.Errorf("the state is another one when restored (%w)", err)
	}
	return data, nil
}

// ending demands a result and shares that others can use.
func (x *played) ending(t testing.TB, p *study.Plan, sites map[string]*gated) error {
	t.Helper()
	r, err := x.c.Result(x.s)
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	for name, v := range r.Metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("metric %q is %v", name, v)
		}
	}
	for _, section := range r.Sections {
		for _, item := range section.Items {
			if item.Figure == nil {
				continue
			}
			if err := item.Figure.SVG(io.Discard); err != nil {
				return fmt.Errorf("figure %s: %w", item.Figure.ID, err)
			}
		}
	}
	for _, f := range r.Files {
		if f.Name != "model/model.json" {
			continue
		}
		if _, err := report.LoadModel(f.Data); err != nil {
			return err
		}
	}
	for _, site := range p.Sites {
		share, err := x.c.Share(x.s, site)
		if err != nil {
			return fmt.Errorf("share of site %s: %w", site, err)
		}
		if site == "a" {
			continue // it may have said that its own encoder is another
		}
		if _, err := sites[site].half.Report(t.Context(), share, rowsOf(t, p)); err != nil {
			return fmt.Errorf("the report of site %s: %w", site, err)
		}
	}
	return nil
}
