package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/dataset"
	"parley/figure"
	"parley/privacy/ledger"
	"parley/problem"
)

// DoubtsID identifies the section of a site's own report that names what its rows show.
const DoubtsID = "own-rows"

// mostDoubts is how many of them a report opens with.
const mostDoubts = 10

// doubts makes the section of what a person should look at again in the site's own rows before
// anybody relies on a result: none where there is nothing. It quotes codes and counts of a single
// site, so it is for the site's own report and for nobody else.
func (h *Host) doubts(ctx context.Context, cost *ledger.Cost) ([]figure.Section, error) {
	var doubts, shapes problem.List
	seen, err := h.describe(ctx, cost)
	switch {
	case errors.As(err, &doubts): // values that are too large to be summarised
	case err != nil:
		return nil, err
	default:
		doubts, shapes = seen.Doubts(), seen.Shapes()
	}
	if d, ok := h.Data.(*dataset.Dir); ok {
		doubts = append(d.LeftOut(), doubts...)
	}
	if len(doubts)+len(shapes) == 0 {
		return nil, nil
	}
	s := figure.Section{ID: DoubtsID, Title: "What to check in your data",
		Lead: "This was noticed in this site's rows. It stopped nothing, and no report that others see says it. If " +
			"something of it is an error, the study's result rests on that error: tell those who lead the study, " +
			"correct the data or the plan, and run the study again."}
	say := func(title, text string, warning bool) {
		s.Items = append(s.Items, figure.Item{Note: &figure.Note{Title: title, Text: text, Warning: warning}})
	}
	first := doubts[:min(len(doubts), mostDoubts)]
	for _, d := range first {
		say(titled(d), sentence(d.Hint), true)
	}
	if more := doubts[len(first):]; len(more) > 0 {
		var titles []string
		for _, d := range more {
			titles = append(titles, titled(d))
		}
		say(fmt.Sprintf("There are %d more such notes on this site's rows", len(more)), strings.Join(titles, "\n\n"),
			true)
	}
	for _, d := range shapes {
		say(titled(d), sentence(d.Hint), false)
	}
	return []figure.Section{s}, nil
}

// describe returns what the site's rows show in a study of that cost, and reads them if nobody has before.
func (h *Host) describe(ctx context.Context, cost *ledger.Cost) (*dataset.Summary, error) {
	seen := h.Summary
	if seen == nil {
		var err error
		if seen, err = dataset.Describe(ctx, h.Data); err != nil {
			return nil, err
		}
	}
	own := *seen
	own.Worth = cost.Worth()
	return &own, nil
}

// titled says what is the matter, and where.
func titled(p problem.Problem) string { return strings.TrimSuffix(sentence(p.Where+": "+p.What), ".") }
