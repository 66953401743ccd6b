package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"parley/figure"
	"parley/study"
)

// Settings are a paper's table of hyperparameters, held against the defaults of a plan.
type Settings struct {
	Item  string                      // as the paper counts: Table 2
	Of    string                      // what the table is of
	Plan  func() (*study.Plan, error) // leaves to its defaults whatever the table says
	Lines []Setting
}

// Setting is one line of such a table.
type Setting struct {
	Says      string // the paper's name for it
	Published any    // a number, a text or true
	Key       string // of the plan, below method: update.steps; "" where no plan says it
	// Ours is the default where it differs, and Why says why it does and what that changes.
	// Without a key, Why says where the setting is kept instead.
	Ours any
	Why  string
}

// Table shows published settings beside the plan's.
func (s Settings) Table() figure.Table {
	t := figure.Table{ID: Slug(s.Item), Title: s.Item,
		Caption: s.Of + ": published settings, and the defaults of plans.",
		Columns: figure.TextColumns("setting", "published", "key", "default")}
	for _, l := range s.Lines {
		ours := l.Ours
		if ours == nil {
			ours = l.Published
		}
		text, key := fmt.Sprint(ours), l.Key
		switch {
		case key == "":
			text = l.Why
		case l.Why != "":
			text += ": " + l.Why
		}
		if key != "" {
			key = "`" + key + "`"
		}
		t.Add(l.Says, fmt.Sprint(l.Published), key, text)
	}
	return t
}

// Check holds the table against what a plan says that says nothing of it.
func (s Settings) Check() error {
	p, err := s.Plan()
	if err != nil {
		return fmt.Errorf("%s: %w", s.Item, err)
	}
	var options any
	if err := again(p.Method.Options, &options); err != nil {
		return err
	}
	var all []error
	for _, l := range s.Lines {
		if err := l.check(options); err != nil {
			all = append(all, fmt.Errorf("%s: %s: %w", s.Item, l.Says, err))
		}
	}
	return errors.Join(all...)
}

func (l Setting) check(options any) error {
	switch {
	case l.Published == nil:
		return errors.New("nothing is published")
	case l.Key == "" && l.Why == "":
		return errors.New("no key, and no word on where it is kept")
	case l.Key == "":
		return nil
	case (l.Ours != nil) != (l.Why != ""):
		return errors.New("what differs needs a reason, and only that")
	}
	found := options
	for part := range strings.SplitSeq(l.Key, ".") {
		block, _ := found.(map[string]any)
		if found = block[part]; found == nil {
			return fmt.Errorf("the plan has no method.%s", l.Key)
		}
	}
	said := l.Ours
	if said == nil {
		said = l.Published
	}
	var want any
	if err := again(said, &want); err != nil {
		return err
	}
	if !reflect.DeepEqual(found, want) {
		return fmt.Errorf("method.%s is %v by default, want %v", l.Key, found, want)
	}
	return nil
}

// again reads what something is in JSON.
func again(from, to any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}
