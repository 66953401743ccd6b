package method

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"parley/figure"
	"parley/problem"
)

// Check refuses candidates that are not ascending numbers.
func (c SelectConfig) Check() error {
	if v := c.Values; len(v) == 0 || v[0] < 1 || !slices.IsSorted(v) || len(slices.Compact(slices.Clone(v))) != len(v) {
		return fmt.Errorf("the candidates %v are not ascending numbers from 1", v)
	}
	return nil
}

// Metrics lists scores, settings and choices under plain names; short names the rules.
func (s *Selection) Metrics(short map[string]string) map[string]float64 {
	m := map[string]float64{"recommended": float64(s.Recommended)}
	for _, c := range s.Candidates {
		for name, x := range c.Scores {
			m[fmt.Sprintf("%s/%d", name, c.Value)] = x
		}
	}
	maps.Copy(m, s.Settings)
	for _, c := range s.Choices {
		m["choice/"+short[c.Rule]] = float64(c.Value)
	}
	return m
}

// Headline is what is recommended.
func (s *Selection) Headline() figure.Fact {
	value := "none yet"
	if s.Recommended > 0 {
		value = strconv.Itoa(s.Recommended)
	}
	return figure.Fact{Name: s.Noun + " recommended", Value: value}
}

// Choice returns what a rule would take, 0 if it was not computed.
func (s *Selection) Choice(rule string) int {
	for _, c := range s.Choices {
		if c.Rule == rule {
			return c.Value
		}
	}
	return 0
}

// Section shows warnings, then the candidates or what every rule would take, then notes.
func (s *Selection) Section(lead string) figure.Section {
	sec := figure.Section{ID: "choice", Title: "How many " + s.Noun, Lead: lead}
	note := func(p problem.Problem, title string, warning bool) {
		text := strings.ToUpper(p.What[:1]) + p.What[1:] + "."
		if p.Hint != "" {
			text += "\n\nWhat would be right: " + strings.ReplaceAll(p.Hint, "\n", "; ") + "."
		}
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: title, Text: text, Warning: warning}})
	}
	for _, p := range s.Warnings {
		note(p, "Nothing is recommended yet: "+p.Where, true)
	}
	table := s.Table
	if table == nil {
		table = s.rules()
	}
	sec.Items = append(sec.Items, figure.Item{Table: table})
	for _, p := range s.Notes {
		note(p, "Note on "+p.Where, false)
	}
	return sec
}

// rules is a table of what every rule would take.
func (s *Selection) rules() *figure.Table {
	rule, value, why := figure.Column{Name: "rule"}, figure.Column{Name: s.Noun, Format: figure.Count},
		figure.Column{Name: "meaning"}
	for _, c := range s.Choices {
		rule.Text, why.Text = append(rule.Text, c.Rule), append(why.Text, c.Why)
		value.Numbers = append(value.Numbers, float64(c.Value))
	}
	return &figure.Table{ID: "choices", Title: "What each rule would take", Columns: []figure.Column{rule, value, why},
		Caption: "Where the rules agree, and nothing is warned of, the choice is safe. Where they do not, the " +
			"smaller number is easier to interpret and the larger predicts better."}
}

// Curve lists a score by candidate, NaN where there is none.
func (s *Selection) Curve(score string) (x, y figure.Numbers) {
	for _, c := range s.Candidates {
		v, ok := c.Scores[score]
		if !ok {
			v = math.NaN()
		}
		x, y = append(x, float64(c.Value)), append(y, v)
	}
	return x, y
}
