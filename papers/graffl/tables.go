package graffl

import (
	"context"
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"parley/figure"
	"parley/judge/evaluate"
	"parley/papers/experiment"
)

// The settings of Table 1, whose last three of six sites have lost most of one class, and
// of Table 2.
var (
	lost  = []setting{hospital("1 %", 0.01), hospital("5 %", 0.05), hospital("10 %", 0.1)}
	alike = []setting{wards(1000, 24), wards(1000, 5), wards(200, 5)}
)

func hospital(name string, share float64) setting {
	return setting{source: heart, name: name, codes: 5, among: 6, aside: 0.3, targets: 3, share: share}
}

func wards(rows, codes int) setting {
	return setting{source: intensive, name: fmt.Sprintf("3 × %d, d = %d", rows, codes), codes: codes, among: 3,
		rows: rows, aside: 0.25}
}

func (s setting) id(split int) string {
	return fmt.Sprintf("%s-%02d", experiment.Slug(s.name), split+1)
}

// splits is how often rows are dealt.
const splits = 10

// outcomes are those of a setting's splits that were run.
func (s setting) outcomes(o experiment.Outcomes) (all []experiment.Values) {
	for i := range splits {
		if v := o[s.id(i)]; v != nil {
			all = append(all, v)
		}
	}
	return all
}

// at is a measure of an arm at one of the targets, over splits.
func at(of []experiment.Values, arm, measure string, target int) (all []float64) {
	for _, v := range of {
		if x := v[arm+", "+measure]; target < len(x) {
			all = append(all, x[target])
		}
	}
	return all
}

// cells are those of settings.
func cells(settings []setting) func(quick bool) experiment.Cells {
	return func(quick bool) (all experiment.Cells) {
		for i, s := range settings {
			for split := range splits {
				if quick && (split > 1 || i < len(settings)-1) {
					continue
				}
				all.Add(s.id(split), func(ctx context.Context, at experiment.Data) (experiment.Values, error) {
					return s.measure(ctx, at, uint64(split+1), quick)
				})
			}
		}
		return all
	}
}

// allArms shows every arm in every setting.
func allArms(o experiment.Outcomes, settings []setting) figure.Table {
	t := figure.Table{ID: "arms", Title: "Every arm",
		Caption: "AUC ± its standard deviation over splits / F1 at ½ / F1 at the cut-off that is best for the held " +
			"rows, means over the sites that are to be helped; d numbers in a code.",
		Columns: []figure.Column{{Name: "arm", Text: append(arms(), "synthetic rows kept")}}}
	for _, s := range settings {
		c := figure.Column{Name: s.name}
		all := s.outcomes(o)
		for _, arm := range arms() {
			var texts []string
			for _, measure := range []string{auc, f1, f1There} {
				var means []float64
				for _, v := range all {
					if x := v[arm+", "+measure]; len(x) > 0 {
						means = append(means, stat.Mean(x, nil))
					}
				}
				switch {
				case len(means) == 0:
				case measure == auc:
					texts = append(texts, experiment.SpreadOf(means).Text(3))
				default:
					texts = append(texts, fmt.Sprintf("%.2f", stat.Mean(means, nil)))
				}
			}
			c.Text = append(c.Text, strings.Join(texts, " / "))
		}
		var keeps []float64
		for _, v := range all {
			keeps = append(keeps, v[kept]...)
		}
		text := ""
		if len(keeps) > 0 {
			text = fmt.Sprintf("%.0f of %d", floats.Sum(keeps), len(keeps))
		}
		c.Text = append(c.Text, text)
		if len(all) > 0 {
			t.Columns = append(t.Columns, c)
		}
	}
	return t
}

// contest compares generators with everything that sites could have without them.
func contest(o experiment.Outcomes, settings []setting) figure.Table {
	t := figure.Table{ID: "who-wins", Title: "Who wins where",
		Caption: "AUC of an arm with synthetic rows less that of one without, on the same held rows, means over " +
			"sites, with a 95 % interval for repeated splits (Nadeau and Bengio): above zero synthetic rows win.",
		Columns: figure.TextColumns("setting", "with synthetic rows", "without", "difference", "95 % interval",
			"splits won, lost", "verdict")}
	for _, s := range settings {
		for _, c := range []struct {
			ours   string
			rivals []string // to which those on features come
		}{{own + published, []string{own + raw}}, {one + published, []string{one + raw, one + elsewhere}},
			{one + mixed, []string{one + raw, one + elsewhere}}} {
			for _, rival := range append(c.rivals, ridgeAtSite, pviOverSites) {
				var with, without []float64
				for _, v := range s.outcomes(o) {
					a, b := v[c.ours+", "+auc], v[rival+", "+auc]
					n := min(len(a), len(b)) // of the same sites: the first may have been left out
					if n > 0 {
						with, without = append(with, stat.Mean(a[len(a)-n:], nil)),
							append(without, stat.Mean(b[len(b)-n:], nil))
					}
				}
				d, err := evaluate.Paired(with, without, 0.95, s.aside/(1-s.aside))
				if err != nil {
					continue // fewer than two splits
				}
				verdict := "no difference"
				switch {
				case d.Low > 0:
					verdict = "synthetic rows win"
				case d.High < 0:
					verdict = "synthetic rows lose"
				}
				minus := experiment.Minus
				t.Add(minus(s.name), minus(c.ours), minus(rival), minus(fmt.Sprintf("%+.3f", d.Mean)),
					minus(fmt.Sprintf("%+.3f to %+.3f", d.Low, d.High)),
					fmt.Sprintf("%d, %d", d.Losses, d.Wins), verdict) // the higher score is the better
			}
		}
	}
	return t
}

// published1 is Table 1: F1 and cut-off of each node, raw and with GRAFFL.
var published1 = map[string]map[string][3][2]float64{
	"1 %":  {raw: {{0, 0.8}, {0, 0.8}, {0, 0.8}}, published: {{1, 0.4168}, {0.6667, 0.6053}, {1, 0.503}}},
	"5 %":  {raw: {{0, 0.9524}, {0, 0.9524}, {0, 0.9375}}, published: {{1, 0.5305}, {1, 0.3721}, {0.9091, 0.5077}}},
	"10 %": {raw: {{0, 0.9762}, {0, 0.975}, {0, 0.9667}}, published: {{1, 0.9174}, {0.9697, 0.9735}, {1, 0.9619}}},
}

// table1 is Table 1, with another data set.
func table1() experiment.Experiment {
	return experiment.Experiment{Name: "graffl-table-1", Data: []string{heart.name},
		Cells: cells(lost),
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{Headings: []string{"share", "site", "rows"}}
			for _, s := range lost {
				all := s.outcomes(o)
				if len(all) == 0 {
					continue
				}
				for _, kind := range []string{raw, published} {
					for k, p := range published1[s.name][kind] {
						of := []string{s.name, fmt.Sprint(k + 1), kind}
						cuts := at(all, own+kind, cutOff, k)
						for i := range cuts {
							cuts[i] = 1 - cuts[i]
						}
						out.Add(of, f1, 3, &experiment.Spread{Mean: p[0]}, at(all, own+kind, f1, k))
						out.Add(of, cutOff, 3, &experiment.Spread{Mean: p[1]}, cuts)
					}
				}
			}
			out.Tables = []figure.Table{allArms(o, lost), contest(o, lost)}
			return out
		},
	}
}

// published2 is Table 2 for each of three sites: others for each death, AUC, cut-off, and
// the standard deviation of the AUC over augmented sets, which only GRAFFL has.
var published2 = map[string][3][4]float64{
	raw:       {{5, 0.6720, 0.7169}, {5, 0.5543, 0.7874}, {6, 0.6387, 0.7111}},
	published: {{1, 0.7119, 0.2594, 0.0772}, {1, 0.7843, 0.6056, 0.0909}, {1, 0.8145, 0.4072, 0.1198}},
}

var publishedAll = [2]float64{0.8158, 0.2313}

// table2 is Table 2, with Figure 4, which draws it.
func table2() experiment.Experiment {
	return experiment.Experiment{Name: "graffl-table-2", Data: []string{intensive.name},
		Cells: cells(alike),
		Conclude: func(o experiment.Outcomes) experiment.Conclusion {
			out := experiment.Conclusion{Headings: []string{"rows", "site"}}
			if all := alike[0].outcomes(o); len(all) > 0 {
				rows2(&out, all)
				out.Figures = []figure.Figure{figure4(all)}
			}
			out.Tables = []figure.Table{allArms(o, alike), contest(o, alike)}
			return out
		},
	}
}

// rows2 sets Table 2 beside ours.
func rows2(out *experiment.Conclusion, all []experiment.Values) {
	for i, measure := range []string{auc, cutOff} {
		out.Add([]string{"all", ""}, measure, 3, &experiment.Spread{Mean: publishedAll[i]},
			at(all, allCodes, measure, 0))
	}
	for _, kind := range []string{raw, published} {
		for k, p := range published2[kind] {
			ratio := []float64{1}
			if kind == raw {
				ratio = nil
				for _, v := range all {
					ratio = append(ratio, v["ratio"][k])
				}
			}
			of := []string{kind, fmt.Sprint(k + 1)}
			out.Add(of, "others for each death", 1, &experiment.Spread{Mean: p[0]}, ratio)
			for i, measure := range []string{auc, cutOff, spread} {
				if ours := at(all, own+kind, measure, k); len(ours) > 0 {
					out.Add(of, measure, 3, &experiment.Spread{Mean: p[i+1]}, ours)
				}
			}
		}
	}
}

// figure4 draws the AUC of every site, published and ours, with the controls.
func figure4(all []experiment.Values) figure.Figure {
	b := figure.Bars{X: figure.Axis{Label: "AUC on held stays"}, Mark: "published"}
	put := func(arm, site string, target int, published float64) {
		ours := experiment.SpreadOf(at(all, arm, auc, target))
		b.Labels, b.Groups = append(b.Labels, strings.TrimPrefix(arm, own)), append(b.Groups, site)
		b.Values, b.Low, b.High = append(b.Values, ours.Mean), append(b.Low, ours.Mean-ours.SD),
			append(b.High, ours.Mean+ours.SD)
		b.Marks = append(b.Marks, published)
	}
	put(allCodes, "all", 0, publishedAll[0])
	for _, kind := range []string{raw, published} {
		for k, p := range published2[kind] {
			put(own+kind, fmt.Sprintf("site %d", k+1), k, p[1])
		}
	}
	for k := range 3 {
		put(ridgeAtSite, fmt.Sprintf("site %d", k+1), k, math.NaN())
	}
	put(pviOverSites, "all", 0, math.NaN())
	return figure.Figure{ID: "auc", Title: "AUC of each site", Chart: b,
		Alt: "AUC of each of three sites, raw, with GRAFFL, and of the controls, " +
			"with the published values as strokes.",
		Caption: fmt.Sprintf("Mean ± standard deviation over %d splits; strokes are the published values. "+
			"The paper has no controls.", len(all))}
}
