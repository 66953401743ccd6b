package selection

import (
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"parley/figure"
	"parley/method/judged"
	"parley/problem"
)

// Metrics lists scores, settings and choices under plain names; short names the rules.
func Metrics(out *judged.Selection, short map[string]string) map[string]float64 {
	m := map[string]float64{"recommended": float64(out.Recommended)}
	for _, c := range out.Candidates {
		for name, x := range c.Scores {
			m[fmt.Sprintf("%s/%d", name, c.Value)] = x
		}
	}
	maps.Copy(m, out.Settings)
	for _, c := range out.Choices {
		m["choice/"+short[c.Rule]] = float64(c.Value)
	}
	return m
}

// Headline is what is recommended.
func Headline(out *judged.Selection) figure.Fact {
	value := "none yet"
	if out.Recommended > 0 {
		value = strconv.Itoa(out.Recommended)
	}
	return figure.Fact{Name: "factors recommended", Value: value}
}

// ChoiceOf returns what a rule would take, 0 if it was not computed.
func ChoiceOf(out *judged.Selection, rule string) int {
	for _, c := range out.Choices {
		if c.Rule == rule {
			return c.Value
		}
	}
	return 0
}

// ChoiceSection shows warnings, then what every rule would take.
func ChoiceSection(out *judged.Selection, lead string) figure.Section {
	sec := figure.Section{ID: "choice", Title: "How many factors", Lead: lead}
	note := func(p problem.Problem, title string, warning bool) {
		text := strings.ToUpper(p.What[:1]) + p.What[1:] + "."
		if p.Hint != "" {
			text += "\n\nWhat would be right: " + strings.ReplaceAll(p.Hint, "\n", "; ") + "."
		}
		sec.Items = append(sec.Items, figure.Item{Note: &figure.Note{Title: title, Text: text, Warning: warning}})
	}
	for _, p := range out.Warnings {
		note(p, "Nothing is recommended yet: "+p.Where, true)
	}
	rule, value, why := figure.Column{Name: "rule"}, figure.Column{Name: "factors", Format: figure.Count}, figure.Column{Name: "meaning"}
	for _, c := range out.Choices {
		rule.Text, why.Text = append(rule.Text, c.Rule), append(why.Text, c.Why)
		value.Numbers = append(value.Numbers, float64(c.Value))
	}
	sec.Items = append(sec.Items, figure.Item{Table: &figure.Table{ID: "choices", Title: "What each rule would take", Columns: []figure.Column{rule, value, why},
		Caption: "Where the rules agree, and nothing is warned of, the choice is safe. Where they do not, the smaller number is easier to interpret and the larger predicts better."}})
	for _, p := range out.Notes {
		note(p, "Note on "+p.Where, false)
	}
	return sec
}

// Curve lists a score by candidate, NaN where there is none.
func Curve(out *judged.Selection, score string) (x, y figure.Numbers) {
	for _, c := range out.Candidates {
		v, ok := c.Scores[score]
		if !ok {
			v = math.NaN()
		}
		x, y = append(x, float64(c.Value)), append(y, v)
	}
	return x, y
}
