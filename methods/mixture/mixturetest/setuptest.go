// Package mixturetest makes plans for the tests of rooms, which cannot ask the method that is
// above them: [New] for the setup of a plan, [Shown] for what becomes of a section.
package mixturetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/methods/mixture/options"
	"parley/study"
)

// Method knows the options of plans, and nothing else of the method.
type Method struct{ method.Method }

// Name implements [method.Method].
func (Method) Name() string { return options.Name }

// Options implements [method.Method].
func (Method) Options() any { return options.Default() }

// Text is a plan of sites a and b with some features, each from −8 to 8; method is what it
// says of the method, as in components: 2, and privacy its protection.
func Text(features int, method, privacy string) string {
	text := "parley: 1\nname: small\nsites: [a, b]\nviews:\n  - name: v\n    features:\n"
	for i := range features {
		text += fmt.Sprintf("      - {name: f%d, range: [-8, 8]}\n", i+1)
	}
	return text + fmt.Sprintf("subjects: [sick]\nmethod: {name: graffl, %s}\nprivacy: %s\n", method, privacy)
}

// New is the setup of such a plan. It panics if the plan is wrong.
func New(text string) *options.Setup {
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		panic(err)
	}
	s, err := options.New(p)
	if err != nil {
		panic(err)
	}
	return s
}

// Attacks is the table of attacks in a report's section of them, as text.
func Attacks(s figure.Section) (string, error) {
	if !strings.Contains(s.Lead, "parley attack graffl") || len(s.Items) != 1 {
		return "", fmt.Errorf("no section of attacks: %+v", s)
	}
	var b strings.Builder
	err := s.Items[0].Table.Text(&b)
	return b.String(), err
}

// Shown returns the figures of a section, and an error if something in it cannot be shown,
// is not drawn twice alike, or shows a row.
func Shown(s figure.Section) (figures []*figure.Figure, err error) {
	var all []error
	for _, item := range s.Items {
		switch {
		case item.Figure != nil:
			f := item.Figure
			var one, two bytes.Buffer
			all = append(all, f.SVG(&one), f.SVG(&two), f.CSV(io.Discard))
			if !bytes.Equal(one.Bytes(), two.Bytes()) || f.Alt == "" || f.Caption == "" || f.PerSubject() || bytes.Contains(one.Bytes(), []byte("Not available")) {
				all = append(all, fmt.Errorf("figure %s: alt %q, caption %q, per subject %v, or it is not drawn twice alike", f.ID, f.Alt, f.Caption, f.PerSubject()))
			}
			figures = append(figures, f)
		case item.Table != nil:
			if item.Table.Len() == 0 {
				all = append(all, fmt.Errorf("table %s is empty", item.Table.ID))
			}
		case item.Note == nil:
			all = append(all, errors.New("an empty item"))
		}
	}
	return figures, errors.Join(all...)
}
