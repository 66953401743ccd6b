package generative

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"

	"gonum.org/v1/gonum/stat/distuv"

	"parley/engine/local"
	"parley/experiment"
	"parley/figure"
	"parley/methods/graffl/mixture"
	"parley/methods/graffl/report"
)

const (
	componentSets  = 2   // data sets of each kind
	componentSeed  = 701 // of the first
	componentRows  = 3000
	mostComponents = 6 // in a plan
)

// groupKind is what the groups are like whose number is to be found.
type groupKind struct {
	name   string
	apart  float64 // of the nearest, in standard deviations
	skewed bool
	of     []int // how many there are
}

var groupKinds = []groupKind{{"normal", 4, false, []int{2, 3, 4, 5}}, {"close", 2.5, false, []int{3}}, {"skewed", 4, true, []int{3}}}

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

// planned are the numbers of components that plans have.
func (c componentKind) planned() (all []int) {
	for k := c.components - 1; k <= min(c.components+2, mostComponents); k++ {
		all = append(all, k)
	}
	return all
}

// The names of a study's values, before its number of components.
const (
	misfits  = "misfit p"
	doubted  = "doubts"
	notFound = "not found" // components of which the report says so
)

func planning(name string, k int) string { return fmt.Sprintf("%s, K %d", name, k) }

// run runs a study with each number of components on one data set.
func (c componentKind) run(ctx context.Context, seed uint64) (experiment.Values, error) {
	r := rand.New(rand.NewPCG(seed, 22))
	truth := c.truth(r)
	rows := c.simulate(truth, r)
	if c.groups.skewed {
		rows = c.skew(truth, r)
	}
	v := experiment.Values{}
	for _, k := range c.planned() {
		fit := c.mixtureKind
		fit.components = k
		config, err := fit.config(seed, rows, c.epsilon)
		if err != nil {
			return nil, err
		}
		out, err := local.Run(ctx, *config)
		if err != nil {
			return nil, err
		}
		v[planning(misfits, k)], v[planning(doubted, k)] = []float64{out.Result.Metrics["misfit_p"]}, []float64{out.Result.Metrics["doubts"]}
		v[planning(notFound, k)] = namedNotFound(out.Result.Sections)
	}
	return v, nil
}

var saysNotFound = regexp.MustCompile(`component (\d+) was not found: `)

// namedNotFound are the components of which the warnings of a report say that they were not found.
func namedNotFound(sections []figure.Section) []float64 {
	all := []float64{}
	for _, s := range sections {
		for _, item := range s.Items {
			if n := item.Note; n != nil && n.Warning {
				for _, m := range saysNotFound.FindAllStringSubmatch(n.Text, -1) {
					k, _ := strconv.Atoi(m[1])
					all = append(all, float64(k))
				}
			}
		}
	}
	return all
}

// skew draws rows with the means and variances of a mixture whose components have a skewness of
// 1 in every feature: sums of four exponential numbers.
func (c componentKind) skew(truth mixture.Mixture, r *rand.Rand) (rows []float64) {
	const terms = 4
	for range c.rows {
		k := mixture.Pick(r, truth.Weights)
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
	return experiment.Experiment{Name: "parley-components", Paper: "parley", Item: "Finding the number of components",
		About: fmt.Sprintf("Data sets of %d rows at three sites are drawn with 2 to 5 groups, 4 standard deviations apart, and run with plans of more and fewer components. Close are 3 groups 2.5 standard deviations apart, and skewed 3 groups with a skewness of 1 in each feature.", componentRows),
		Notes: []string{"A report has a doubt if its metric `doubts` is not 0. Plans have one component too few, the right number, one too many, and two too many where these are 6 or fewer."},
		Cells: func(quick bool) (cells []experiment.Cell) {
			for _, g := range groupKinds {
				for _, d := range componentDims {
					for _, epsilon := range componentTotals {
						for _, c := range g.kinds(d, epsilon) {
							for set := range componentSets {
								if quick && len(cells) > 0 {
									continue
								}
								cells = append(cells, experiment.Cell{ID: c.id(set), Run: func(ctx context.Context, _ experiment.Data) (experiment.Values, error) {
									return c.run(ctx, uint64(componentSeed+set))
								}})
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

// rightNumber is the place of the right number among those that are planned.
const rightNumber = 1

// numberScore counts reports of plans with one number of components.
type numberScore struct{ reports, doubted, misfits, notFound int }

// leastUndoubted is promised of the right number of groups that are normal and apart, and leastDoubted
// of every other number that was tried: shares of reports without a doubt, and with one.
const leastUndoubted, leastDoubted = 0.9, 0.95

func concludeComponents(o experiment.Outcomes) (out experiment.Conclusion) {
	t := figure.Table{ID: "number", Title: "Reports with a doubt, by the number of components in the plan",
		Caption: "Of so many reports. In brackets: how many say that the sums misfit, and how many that a component was not found.",
		Columns: figure.TextColumns("groups", "features", "privacy", "one too few", "right number", "one too many", "two too many")}
	var right, wrong numberScore // of groups that are normal and apart
	for _, g := range groupKinds {
		for _, d := range componentDims {
			for _, epsilon := range componentTotals {
				line := scoreNumbers(o, g.kinds(d, epsilon))
				if line[0].reports == 0 {
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
				t.Add(row...)
			}
		}
	}
	out.Tables = []figure.Table{t}
	if n := right.reports; (distuv.Binomial{N: float64(n), P: leastUndoubted}).CDF(float64(n-right.doubted)) < beyondChance {
		out.Broken = append(out.Broken, "of reports with the right number "+share(right.doubted, n)+" have a doubt")
	}
	if n := wrong.reports; (distuv.Binomial{N: float64(n), P: leastDoubted}).CDF(float64(wrong.doubted)) < beyondChance {
		out.Broken = append(out.Broken, "of reports with another number only "+share(wrong.doubted, n)+" have a doubt")
	}
	return out
}

// scoreNumbers counts the reports of kinds of data, of plans from one component too few to two too many.
func scoreNumbers(o experiment.Outcomes, kinds []componentKind) (line [4]numberScore) {
	for _, c := range kinds {
		for set := range componentSets {
			v := o[c.id(set)]
			if v == nil {
				continue
			}
			for i, k := range c.planned() {
				s := &line[i]
				s.reports++
				if v[planning(doubted, k)][0] > 0 {
					s.doubted++
				}
				if v[planning(misfits, k)][0] <= report.Level {
					s.misfits++
				}
				if len(v[planning(notFound, k)]) > 0 {
					s.notFound++
				}
			}
		}
	}
	return line
}
