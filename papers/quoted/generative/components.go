package generative

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"

	"parley/engine/local"
	"parley/figure"
	"parley/method"
	"parley/methods/mixture"
	"parley/methods/mixture/fitted"
	"parley/methods/mixture/gmm"
	"parley/papers/experiment"
	"parley/papers/graffl/toy"
)

const (
	componentSets  = 2   // data sets of each kind
	componentSeed  = 701 // of the first
	componentRows  = 3000
	mostComponents = 6 // that are tried
	planComponents = 4 // of every plan, whatever the number of groups: nobody knows it
)

// groupKind is what the groups are like whose number is to be found.
type groupKind struct {
	name   string
	apart  float64 // of the nearest, in standard deviations
	skewed bool
	of     []int // how many there are
}

var groupKinds = []groupKind{{"normal", 4, false, []int{2, 3, 4, 5}}, {"close", 2.5, false, []int{3}},
	{"skewed", 4, true, []int{3}}}

// componentKind is data whose number of components is to be found, and the ε of each study; 0 for
// no privacy.
type componentKind struct {
	mixtureKind
	groups  groupKind
	epsilon float64
}

var (
	componentTotals = []float64{0, 5}
	componentDims   = []int{2, 5}
)

// kinds are those of one line of the table.
func (g groupKind) kinds(dim int, epsilon float64) (all []componentKind) {
	for _, k := range g.of {
		all = append(all, componentKind{mixtureKind{dim, k, g.apart, componentRows, 1, nil}, g, epsilon})
	}
	return all
}

func (c componentKind) id(set int) string {
	return experiment.Slug(fmt.Sprintf("%d %d %s %g %d", c.dim, c.components, c.groups.name, c.epsilon, set+1))
}

// tried are the numbers of components that are fitted.
func (c componentKind) tried() (all []int) {
	for k := 1; k <= min(c.components+2, mostComponents); k++ {
		all = append(all, k)
	}
	return all
}

// The names of a study's values, before its number of components.
const (
	misfits  = "misfit p"
	doubted  = "doubts"
	notFound = "not found" // components of which the report says so
	// Of a whole selection: what it recommends, 0 for nothing; and, if that is right, ranks of means.
	recommended = "recommended"
	chosenRanks = "ranks of means"
)

func fitting(name string, k int) string { return fmt.Sprintf("%s, K %d", name, k) }

// run runs a study of one data set, and fits every number of components to what was released.
func (c componentKind) run(ctx context.Context, seed uint64) (experiment.Values, error) {
	r := rand.New(rand.NewPCG(seed, 22))
	truth := c.truth(r)
	rows := c.simulate(truth, r)
	if c.groups.skewed {
		rows = c.skew(truth, r)
	}
	v := experiment.Values{}
	planned := c.mixtureKind
	planned.components = planComponents
	config, err := planned.config(seed, rows, c.epsilon)
	if err != nil {
		return nil, err
	}
	out, err := local.Run(ctx, *config)
	if err != nil {
		return nil, err
	}
	m := mixture.Method{}
	name, err := m.ReleasedFile(config.Plan)
	if err != nil {
		return nil, err
	}
	releases := out.Result.Files[slices.IndexFunc(out.Result.Files,
		func(f method.File) bool { return f.Name == name })].Data
	chosen, err := m.SelectReleased(ctx, config.Plan, releases, method.SelectConfig{Values: c.tried()})
	if err != nil {
		return nil, err
	}
	for _, x := range chosen.Candidates {
		v[fitting(misfits, x.Value)], v[fitting(doubted, x.Value)] = []float64{x.Scores["misfit_p"]},
			[]float64{x.Scores["doubts"]}
		v[fitting(notFound, x.Value)] = namedNotFound(x.Doubts)
	}
	v[recommended], v[chosenRanks] = []float64{float64(chosen.Recommended)}, []float64{}
	if chosen.Recommended != c.components {
		return v, nil
	}
	refit, err := m.Refit(config.Plan, releases, chosen.Recommended)
	if err != nil {
		return nil, err
	}
	post, err := toy.Sample(refit.Files, c.components, c.dim)
	if err != nil {
		return nil, err
	}
	var scores toy.Scores
	scores.Add(post, truth)
	v[chosenRanks] = scores.Means.Ranks
	return v, nil
}

var saysNotFound = regexp.MustCompile(`^component (\d+) was not found: `)

// namedNotFound are the components of which doubts say that they were not found.
func namedNotFound(doubts []string) []float64 {
	all := []float64{}
	for _, says := range doubts {
		if m := saysNotFound.FindStringSubmatch(says); m != nil {
			k, _ := strconv.Atoi(m[1])
			all = append(all, float64(k))
		}
	}
	return all
}

// skew draws rows with the means and variances of a mixture whose components have a skewness of
// 1 in every feature: sums of four exponential numbers.
func (c componentKind) skew(truth gmm.Mixture, r *rand.Rand) (rows []float64) {
	const terms = 4
	for range c.rows {
		k := gmm.Pick(r, truth.Weights)
		for i, mean := range truth.Mean(k) {
			sum := 0.0
			for range terms {
				sum += r.ExpFloat64() - 1
			}
			rows = append(rows, mean+math.Sqrt(truth.Cov(k)[i*c.dim+i]/terms)*sum)
		}
	}
	return rows
}

func components() experiment.Experiment {
	return experiment.Experiment{Name: "parley-components",
		Cells: func(quick bool) (cells experiment.Cells) {
			for _, g := range groupKinds {
				for _, d := range componentDims {
					for _, epsilon := range componentTotals {
						for _, c := range g.kinds(d, epsilon) {
							for set := range componentSets {
								if quick && len(cells) > 0 {
									continue
								}
								cells.Add(c.id(set), func(ctx context.Context,
									_ experiment.Data) (experiment.Values, error) {
									return c.run(ctx, uint64(componentSeed+set))
								})
							}
						}
					}
				}
			}
			return cells
		},
		Conclude: concludeComponents,
	}
}

// rightNumber is the place of the right number in a line: before it are those with two or more too
// few, and with one.
const rightNumber = 2

// numberScore counts fits with one number of components.
type numberScore struct{ reports, doubted, misfits, notFound int }

// leastUndoubted is promised of the right number of groups that are normal and apart, and leastDoubted
// of every other number that was tried: shares of reports without a doubt, and with one. Of the
// recommendations for such groups leastRight are right.
const leastUndoubted, leastDoubted, leastRight = 0.9, 0.95, 0.95

func concludeComponents(o experiment.Outcomes) (out experiment.Conclusion) {
	t := figure.Table{ID: "number", Title: "Fits with a doubt, by the number of components, and what is recommended",
		Caption: "Of so many reports. In brackets: how many say that the sums misfit, and how many that a component " +
			"was not found. Intervals of 90 % are of means, where the right number is recommended.",
		Columns: figure.TextColumns("groups", "features", "privacy", "two or more too few", "one too few",
			"right number", "one too many", "two too many", "recommended", "intervals hold")}
	var right, wrong numberScore // of groups that are normal and apart
	var chosen choiceScore
	for _, g := range groupKinds {
		for _, d := range componentDims {
			for _, epsilon := range componentTotals {
				line, taken := scoreNumbers(o, g.kinds(d, epsilon))
				if line[rightNumber].reports == 0 {
					continue
				}
				row := []any{g.name, fmt.Sprint(d), privacyName(epsilon)}
				for i, s := range line {
					row = append(row, fmt.Sprintf("%d of %d (%d, %d)", s.doubted, s.reports, s.misfits, s.notFound))
					if g.name != groupKinds[0].name {
						continue
					}
					all := &wrong
					if i == rightNumber {
						all = &right
					}
					all.reports, all.doubted = all.reports+s.reports, all.doubted+s.doubted
				}
				row = append(row, taken.recommended(), "–")
				if n := len(taken.ranks.Ranks); n > 0 {
					row[len(row)-1] = fmt.Sprintf("%.3f of %d", taken.ranks.Coverage(toy.Level), n)
				}
				t.Add(row...)
				if g.name == groupKinds[0].name {
					chosen.right, chosen.wrong = chosen.right+taken.right, chosen.wrong+taken.wrong
				}
			}
		}
	}
	out.Tables = []figure.Table{t}
	if n := right.reports; atMost(n-right.doubted, n, leastUndoubted) < beyondChance {
		out.Broken = append(out.Broken, "of reports with the right number "+share(right.doubted, n)+" have a doubt")
	}
	if n := wrong.reports; atMost(wrong.doubted, n, leastDoubted) < beyondChance {
		out.Broken = append(out.Broken, "of reports with another number only "+share(wrong.doubted, n)+" have a doubt")
	}
	if n := chosen.right + chosen.wrong; atMost(chosen.right, n, leastRight) < beyondChance {
		out.Broken = append(out.Broken, "of recommendations only "+share(chosen.right, n)+" are right")
	}
	return out
}

// choiceScore counts recommendations, with the ranks of true means where they are right.
type choiceScore struct {
	right, wrong, none int
	ranks              toy.Tally
}

func (s choiceScore) recommended() string {
	return fmt.Sprintf("%d right, %d wrong, %d none", s.right, s.wrong, s.none)
}

// scoreNumbers counts the fits of kinds of data, and what is recommended.
func scoreNumbers(o experiment.Outcomes, kinds []componentKind) (line [5]numberScore, taken choiceScore) {
	for _, c := range kinds {
		for set := range componentSets {
			v := o[c.id(set)]
			if v == nil {
				continue
			}
			switch int(v[recommended][0]) {
			case c.components:
				taken.right++
			case 0:
				taken.none++
			default:
				taken.wrong++
			}
			taken.ranks.Ranks = append(taken.ranks.Ranks, v[chosenRanks]...)
			for _, k := range c.tried() {
				s := &line[max(k-c.components+rightNumber, 0)]
				s.reports++
				if v[fitting(doubted, k)][0] > 0 {
					s.doubted++
				}
				if v[fitting(misfits, k)][0] <= fitted.Level {
					s.misfits++
				}
				if len(v[fitting(notFound, k)]) > 0 {
					s.notFound++
				}
			}
		}
	}
	return line, taken
}
