package mixture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/figure"
	"parley/method"
	"parley/study"
)

// text is a plan of sites a and b with some features, each from −8 to 8; method is what it
// says of the method, as in components: 2, and privacy its protection.
func text(features int, method, privacy string) string {
	out := "parley: 1\nname: small\nsites: [a, b]\nviews:\n  - name: v\n    features:\n"
	for i := range features {
		out += fmt.Sprintf("      - {name: f%d, range: [-8, 8]}\n", i+1)
	}
	return out + fmt.Sprintf("subjects: [sick]\nmethod: {name: graffl, %s}\nprivacy: %s\n", method, privacy)
}

// known is what both halves know of a plan. It panics if the plan is wrong.
func known(text string) *setup {
	p, err := study.Parse("plan.yaml", []byte(text), method.Registry{Method{}})
	if err != nil {
		panic(err)
	}
	s, err := setupOf(p)
	if err != nil {
		panic(err)
	}
	return s
}

// attacksText is the table of attacks in a report's section of them, as text.
func attacksText(s figure.Section) (string, error) {
	if !strings.Contains(s.Lead, "parley attack graffl") || len(s.Items) != 1 {
		return "", fmt.Errorf("no section of attacks: %+v", s)
	}
	var b strings.Builder
	err := s.Items[0].Table.Text(&b)
	return b.String(), err
}

// shown returns the figures of a section, and an error if something in it cannot be shown,
// is not drawn twice alike, or shows a row.
func shown(s figure.Section) (figures []*figure.Figure, err error) {
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
