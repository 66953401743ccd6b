// Command private measures what the private mechanism "statistics" is worth:
// the error of describing new subjects and the coverage of 90 % intervals for
// hidden views, by privacy budget, at δ = 10⁻⁵ under add-remove, on drawn data.
//
//	go run ./tools/private [-data paper|wide] [-subjects 400,4000] [-epsilon 1,3,10] [-draws 10]
//
// Errors are in parts of the range of the training rows. Of paper's subjects two
// thirds are trained with; wide's number is that of the training rows. The noise
// is ordinary pseudo-random Gaussian noise: this is a simulation of a mechanism
// on drawn data and protects nobody.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"parley/mvppca"
)

const (
	delta   = 1e-5
	sites   = 3
	minimum = 10 // subjects for a pattern of views
)

// config is what the flags say.
type config struct {
	wide    bool
	draws   int
	widen   float64
	lacking bool
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("private: ")
	kind := flag.String("data", "paper", "data to draw: paper (33 features) or wide (130)")
	subjects := flag.String("subjects", "400,4000", "numbers of subjects")
	epsilons := flag.String("epsilon", "1,3,10", "totals ε")
	var c config
	flag.IntVar(&c.draws, "draws", 10, "data sets to draw for each row, at least 2")
	flag.Float64Var(&c.widen, "widen", 1, "factor on the public ranges")
	flag.BoolVar(&c.lacking, "lacking", false, "let the second and the third site lack a view each")
	flag.Parse()
	ns, err1 := numbers(*subjects)
	es, err2 := numbers(*epsilons)
	if err1 != nil || err2 != nil || flag.NArg() > 0 || c.draws < 2 || !(c.widen > 0) || *kind != "paper" && *kind != "wide" {
		flag.Usage()
		os.Exit(2)
	}
	c.wide = *kind == "wide"
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "data\tsubjects\tε\terror\tcoverage\twidth\t")
	for _, n := range ns {
		for _, e := range es {
			var all []score
			for seed := range c.draws {
				s, err := c.measure(uint64(seed), int(n), e)
				if err != nil {
					log.Fatalf("%s, %v subjects, ε %v, draw %d: %v", *kind, n, e, seed, err)
				}
				all = append(all, s)
			}
			fmt.Fprintf(w, "%s\t%v\t%v\t%s\t%s\t%s\t\n", *kind, n, e, summary(all, func(s score) float64 { return s.error }),
				summary(all, func(s score) float64 { return s.coverage }), summary(all, func(s score) float64 { return s.width }))
			w.Flush()
		}
	}
}

// numbers reads a list of positive numbers.
func numbers(list string) (out []float64, err error) {
	for s := range strings.SplitSeq(list, ",") {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !(x > 0) || x > 1e7 {
			return nil, fmt.Errorf("%q is not a list of positive numbers", list)
		}
		out = append(out, x)
	}
	return out, nil
}

// summary is the mean and the standard deviation between draws.
func summary(all []score, of func(score) float64) string {
	m, s, n := 0.0, 0.0, float64(len(all))
	for _, x := range all {
		m += of(x) / n
	}
	for _, x := range all {
		s += (of(x) - m) * (of(x) - m) / (n - 1)
	}
	return fmt.Sprintf("%.4f ± %.4f", m, math.Sqrt(s))
}

// measure runs the mechanism on one draw.
func (c config) measure(seed uint64, subjects int, epsilon float64) (score, error) {
	r := rand.New(rand.NewPCG(seed, 1))
	draw := paper
	if c.wide {
		draw = wide
	}
	x := draw(r, subjects)
	l, err := mvppca.NewLayout(x.dims, mvppca.NoisePerView)
	if err != nil {
		return score{}, err
	}
	ranges := x.widened(c.widen)
	s, err := mvppca.NewStatistics(l, ranges, minimum)
	if err != nil {
		return score{}, err
	}
	mu := gaussianMu(epsilon, delta)
	var released []mvppca.Released
	for i := range sites {
		var lacking []int
		if c.lacking && i > 0 {
			lacking = []int{i}
		}
		one, err := release(r, s, x.site(i, sites, lacking), mu)
		if err != nil {
			return score{}, fmt.Errorf("site %d: %w", i, err)
		}
		released = append(released, one)
	}
	repaired, err := mvppca.Repair(l, released, seed)
	if err != nil {
		return score{}, err
	}
	fit, err := repaired.Fit(x.q)
	if err != nil {
		return score{}, err
	}
	extra, err := repaired.Uncertainty(fit)
	if err != nil {
		return score{}, err
	}
	return evaluate(l, &fit.Params, extra, x, ranges)
}

// score is how well a model does on the test rows, in parts of the range.
type score struct {
	error    float64 // mean absolute, of describing all values
	coverage float64 // of 90 % intervals for a hidden view, mean of the views
	width    float64 // of these, mean of the features
}

const normal90 = 1.6448536269514722 // 95 % quantile

func evaluate(l mvppca.Layout, m *mvppca.Params, extra []float64, x *data, ranges [][2]float64) (score, error) {
	p, err := mvppca.NewPredictor(l, m)
	if err != nil {
		return score{}, err
	}
	d := l.Features()
	rows := make([][]float64, len(x.test)) // in the model's units
	unit := make([]float64, d)             // of the training range
	for j, r := range ranges {
		unit[j] = (r[1] - r[0]) / (x.ranges[j][1] - x.ranges[j][0])
	}
	for i, row := range x.test {
		rows[i] = slices.Clone(row)
		for j, r := range ranges {
			rows[i][j] = (row[j] - r[0]) / (r[1] - r[0])
		}
	}
	var out score
	all, err := p.Given(l.AllFeatures())
	if err != nil {
		return score{}, err
	}
	values := make([]float64, d)
	for _, t := range rows {
		all.Describe(values, t)
		for j, v := range t {
			out.error += unit[j] * math.Abs(v-values[j]) / float64(d*len(rows))
		}
	}
	variance := make([]float64, d)
	for k := range l.Views() {
		lo, hi := l.View(k)
		post, err := p.Given(slices.Delete(l.AllFeatures(), lo, hi))
		if err != nil {
			return score{}, err
		}
		post.MissingVar(variance)
		inside := 0
		for _, t := range rows {
			post.Impute(values, slices.Concat(t[:lo], t[hi:]))
			for i, j := range post.Missing {
				half := normal90 * math.Sqrt(variance[i]+extra[j])
				if math.Abs(t[j]-values[i]) <= half {
					inside++
				}
				out.width += 2 * half * unit[j] / float64(d*len(rows))
			}
		}
		out.coverage += float64(inside) / float64((hi-lo)*len(rows)*l.Views())
	}
	return out, nil
}
