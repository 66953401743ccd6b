package regression

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"parley/dataset"
	"parley/internal/testkit"
	"parley/method/methodtest"
)

// awkward draws a regression of data that hospitals have on bad days: few subjects, features
// that are constant, copies of each other, or many orders of magnitude apart, single values of
// another unit, outcomes that a feature decides, that are rare, enormous or alike at a site,
// sites that lack a feature, and subjects who are there twice.
func awkward(t testing.TB, r *rand.Rand) methodtest.Case {
	t.Helper()
	of := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	pick := func(xs ...float64) float64 { return xs[r.IntN(len(xs))] }
	names, d := []string{"s0", "s1", "s2", "s3"}[:1+r.IntN(4)], 1+r.IntN(5)
	categories := r.IntN(2)
	var text strings.Builder
	fmt.Fprintf(&text, "parley: 1\nname: awkward\nsites: [%s]\nviews:\n  - name: v\n    features:\n",
		strings.Join(names, ", "))
	for j := range d {
		fmt.Fprintf(&text, "      - x%d\n", j)
	}
	if categories > 0 {
		fmt.Fprint(&text, "      - {name: g, kind: category, levels: [a, b, c]}\n")
	}
	likelihood := of("logistic", "linear", "poisson", "hazard", "softmax")
	outcome := map[string]string{
		"logistic": `{column: y, levels: ["0", "1"]}`, "linear": "{column: y}", "poisson": "{column: y}",
		"hazard":  `{column: days, event: y, levels: ["0", "1"], cuts: [1, 2, 4]}`,
		"softmax": `{column: y, levels: ["0", "1", "2"]}`,
	}[likelihood]
	more := ""
	if likelihood != "softmax" && len(names) > 2 {
		more = of("", "", ", site_effects: random")
	}
	if likelihood == "linear" && strings.Contains(more, ",") {
		more += ", noise_variance: 1"
	}
	subjects := "[y]"
	if likelihood == "hazard" {
		subjects = "[days, y]"
	}
	fmt.Fprintf(&text, "subjects: %s\nmethod: {name: regression, likelihood: %s, outcome: %s%s}\nprivacy: "+
		"{protection: none}\n", subjects, likelihood, outcome, more)
	plan := methodtest.Plan(t, "regression", Method{}.Options(), text.String())

	weights, scale := make([]float64, d), make([]float64, d)
	orders, strength, level := pick(0, 1, 6, 12), pick(0, 0.5, 3, 30), pick(0, -6, 3)
	for j := range weights {
		weights[j] = strength * r.NormFloat64()
		if scale[j] = math.Pow(10, orders*(r.Float64()-0.5)); r.IntN(10) == 0 {
			scale[j] = 0
		}
	}
	copies, gaps := r.IntN(4) == 0, pick(0, 0.02, 0.4)
	data := map[string]dataset.Source{}
	for _, name := range names {
		shift, lacks, all := pick(0, 0, 1, 30), r.IntN(3*d), r.IntN(8) == 0
		var rows []dataset.Row
		for i := range int(pick(1, 2, 5, 30, 200)) {
			x, a, first := make([]float64, d+categories), level+shift/10, 0.0
			for j := range d {
				z := r.NormFloat64() + shift
				if j == 0 {
					first = z
				} else if copies {
					z = first
				}
				a += weights[j] * (z - shift)
				if x[j] = z * scale[j]; r.IntN(300) == 0 {
					x[j] *= 1e6
				}
				if r.Float64() < gaps || j == lacks {
					x[j] = math.NaN()
				}
			}
			if categories > 0 {
				x[d] = float64(r.IntN(3) * r.IntN(2))
			}
			y, days := 0.0, 0.5+3.4*r.Float64()
			switch likelihood {
			case "linear":
				if y = a + pick(0, 1)*r.NormFloat64(); r.IntN(200) == 0 {
					y *= 1e6
				}
			case "poisson":
				y = math.Floor(math.Exp(min(a, 12)) * r.ExpFloat64())
			case "softmax":
				y = float64(r.IntN(2)) + math.Round(1/(1+math.Exp(-a)))
			default:
				if r.Float64() < 1/(1+math.Exp(-a)) {
					y = 1
				}
			}
			if all && likelihood != "linear" {
				y = 0
			}
			said := strconv.FormatFloat(y, 'f', -1, 64)
			subject := []string{said}
			if likelihood == "hazard" {
				subject = []string{strconv.FormatFloat(days, 'f', 3, 64), said}
			}
			row := dataset.Row{ID: fmt.Sprintf("p%05d", i), Views: [][]float64{x}, Subject: subject}
			if i > 0 && r.IntN(10) == 0 {
				row.Views, row.Subject = rows[0].Views, rows[0].Subject
			}
			rows = append(rows, row)
		}
		table := testkit.Get(dataset.NewTable(plan.Schema(), rows))(t)
		data[name] = table
	}
	return methodtest.Case{Plan: plan, Data: data}
}
