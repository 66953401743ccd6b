package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/dataset"
	"parley/engine/local"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/factors"
	"parley/papers/deal"
	"parley/papers/internal/cputime"
	"parley/papers/melba"
)

// sized is a study of a size that is promised.
type sized struct {
	name     string
	dims     []int
	factors  int
	weaker   float64 // how strong a factor is, as a part of the one before
	lacks    float64 // share of subjects who lack a view, of each but the first
	subjects []int   // of each site
}

var cases = []sized{
	{"3 × 100 × 2 500", []int{1500, 1000}, 5, 0.6, 0, []int{100, 100, 100}},
	{"3 × 40 × 10 000", []int{6000, 4000}, 5, 0.6, 0, []int{40, 40, 40}},
	{"34 sites × 216, views missing", []int{80, 60, 40, 36}, 10, 0.6, 0.25, hospitals()},
	{"34 sites × 216, equal factors", []int{80, 60, 40, 36}, 10, 1, 0.25, hospitals()},
	{"200 × 50 × 60", []int{30, 30}, 4, 0.6, 0, slices.Repeat([]int{50}, 200)},
	{"1 000 × 50 × 60", []int{30, 30}, 4, 0.6, 0, slices.Repeat([]int{50}, 1000)},
}

// oneExchange are the options of a study that does what a fit to pooled rows does.
var oneExchange = deal.Keys{"rounds": 0, "site_means": "pooled"}

// hospitals is the sizes of 34 sites: most small, the largest of 184 subjects.
func hospitals() []int {
	out := make([]int, 34)
	for i := range out {
		out[i] = 11 + int(173*math.Pow(float64(i)/33, 8))
	}
	return out
}

// runSize measures what whole studies of a factor model cost at the sizes that are
// promised, beside a fit to the rows of all sites in one place by numpy
// (papers/reference/factors.py), in one run:
//
//	go run -C papers ./measure size -numpy PYTHON [-case NAME]
//
// PYTHON is an interpreter that has numpy, which works with one thread. Times are processor seconds; of studies
// there are also the seconds that somebody waits. From left to right, each does more: numpy's fit; the same fit
// here; the sums of a study of one exchange, and the coordinator's fits from several starts; that whole study; and
// a study by default. Of each, the quickest run is shown, and how many times as long
// as numpy's quickest it takes.
func runSize(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("size", flag.ContinueOnError)
	python := set.String("numpy", "", "a Python interpreter with numpy (required without -work)")
	script := set.String("script", filepath.FromSlash("papers/reference/factors.py"), "the fit by numpy")
	only := set.String("case", "", "only cases whose names contain this")
	work := set.String("work", "",
		"do only this in this process, once, and print what it cost as JSON: pooled, fits, exchange or default")
	repeats := set.Int("repeats", 3, "runs of each, of which the cheapest counts")
	var chosen []sized
	if err := parse(set, args, func() error {
		for _, c := range cases {
			if strings.Contains(c.name, *only) {
				chosen = append(chosen, c)
			}
		}
		switch {
		case *work == "" && *python == "" || *repeats < 1:
			return errors.New("-numpy is needed, and at least one repeat")
		case len(chosen) == 0:
			return fmt.Errorf("no case has %q in its name", *only)
		case *work != "" && len(chosen) > 1:
			return errors.New("-work is for one case")
		}
		return nil
	}); err != nil {
		return err
	}
	if *work != "" {
		x, err := chosen[0].work(ctx, *work)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(x)
	}
	dir, err := os.MkdirTemp("", "parley-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| study | numpy, s (iterations) | all rows, s | fits, s | one exchange, s | default, s " +
		"| iterations with all rows | one exchange on the clock, s | default on the clock, s " +
		"| peak of one exchange and default, MB | nats a subject minus numpy's |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
	for i, c := range chosen {
		if err := c.measure(ctx, filepath.Join(dir, fmt.Sprint(i)), *python, *script, *repeats); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// measure prints a line: several runs of numpy, and of each of the works.
func (c sized) measure(ctx context.Context, file, python, script string, repeats int) error {
	if _, err := c.draw(file); err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	peer := exec.CommandContext(ctx, python, script, file, fmt.Sprint(c.features()), fmt.Sprint(c.factors))
	peer.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1")
	all := []*exec.Cmd{peer}
	for _, w := range works {
		all = append(all, exec.CommandContext(ctx, program, "size", "-case", c.name, "-work", w.name))
	}
	runs, best := make([][]cost, len(all)), make([]cost, len(all))
	for range repeats {
		for i, cmd := range all {
			again := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
			again.Env = cmd.Env
			x, err := run(again)
			if err != nil {
				return err
			}
			runs[i] = append(runs[i], x)
		}
	}
	for i := range runs {
		best[i] = slices.MinFunc(runs[i], func(a, b cost) int { return cmp.Compare(a.CPU, b.CPU) })
	}
	numpy := best[0]
	if numpy.BLAS == "" {
		fmt.Fprintln(os.Stderr, "numpy multiplies with no optimised library that is known: "+
			"ratios to it say little (Debian: apt-get install libopenblas0)")
	}
	fmt.Printf("| %s | %.3f (%d) ", c.name, numpy.CPU, numpy.Iterations)
	for i := range works {
		fmt.Printf("| %s ", seconds(runs[1+i], runs[0], processor))
	}
	fmt.Printf("| %d | %s | %s | %.0f, %.0f ", best[1].Iterations, seconds(runs[3], runs[0], clock),
		seconds(runs[4], runs[0], clock), float64(best[3].Peak)/1e6, float64(best[4].Peak)/1e6)
	for i := range works {
		fmt.Printf("%s %+.4f", []string{"|", ",", ",", ","}[i], best[1+i].LogLik-numpy.LogLik)
	}
	fmt.Println(" |")
	return nil
}

// run reads the cost that a process prints.
func run(cmd *exec.Cmd) (out cost, err error) {
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("running %s: %w", cmd, err)
	}
	return out, json.Unmarshal(text, &out)
}

// features is how many a row has.
func (c sized) features() (d int) {
	for _, n := range c.dims {
		d += n
	}
	return d
}

// study runs a whole study in one process, with further options.
func (c sized) study(ctx context.Context, sites map[string]dataset.Source, options deal.Keys) (out cost, err error) {
	m := deal.Keys{"name": "factors", "latent": c.factors, "noise": "feature", "scaling": "standard",
		"outliers": "keep"}
	maps.Copy(m, options)
	methods := method.Registry{factors.Method{}}
	plan, err := deal.Plan(methods, deal.Keys{"name": "size", "sites": evaluate.SiteNames(len(c.subjects)),
		"views": deal.Views(melba.Schema(c.dims), nil), "method": m})
	if err != nil {
		return out, err
	}
	used, began := cputime.Used(), time.Now()
	r, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: sites})
	if err != nil {
		return out, err
	}
	return cost{CPU: (cputime.Used() - used).Seconds(), Wall: time.Since(began).Seconds(),
		LogLik: r.Result.Metrics["log_likelihood_per_subject"]}, nil
}

// draw draws subjects of one population with unequal noise, and writes the rows of all sites
// into a file for numpy.
func (c sized) draw(file string) (sites map[string]dataset.Source, err error) {
	rng, strength := rand.New(rand.NewPCG(7, 14)), 0.0
	for a := range c.factors {
		strength += math.Pow(c.weaker, 2*float64(a))
	}
	var loadings [][]float64
	var noise []float64
	for _, n := range c.dims {
		for range n {
			w := make([]float64, c.factors)
			for a := range w {
				w[a] = math.Pow(c.weaker, float64(a)) * rng.NormFloat64() / math.Sqrt(strength)
			}
			loadings, noise = append(loadings, w), append(noise, 0.5+rng.Float64())
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sites, schema := map[string]dataset.Source{}, melba.Schema(c.dims)
	for i, name := range evaluate.SiteNames(len(c.subjects)) {
		// In few pieces of memory, as numpy has them: what others cost the garbage collector is no part of a study.
		d, k, n := len(loadings), len(c.dims), c.subjects[i]
		rows, views, values := make([]dataset.Row, n), make([][]float64, n*k), make([]float64, n*d)
		for s := range rows {
			rows[s] = dataset.Row{ID: fmt.Sprintf("s%05d", s), Views: views[s*k:][:k:k]}
			if err := c.row(rng, loadings, noise, rows[s].Views, values[s*d:][:d:d], f); err != nil {
				return nil, err
			}
		}
		if sites[name], err = dataset.NewTable(schema, rows); err != nil {
			return nil, err
		}
	}
	return sites, nil
}

// row draws a subject's values t, and its views of them.
func (c sized) row(rng *rand.Rand, loadings [][]float64, noise []float64, views [][]float64, t []float64,
	f io.Writer) error {
	x := make([]float64, c.factors)
	for a := range x {
		x[a] = rng.NormFloat64()
	}
	for j, w := range loadings {
		t[j] = noise[j] * rng.NormFloat64()
		for a, v := range x {
			t[j] += w[a] * v
		}
	}
	copy(views, melba.Views(c.dims, t))
	at := c.dims[0]
	for k, n := range c.dims[1:] {
		if rng.Float64() < c.lacks {
			views[k+1] = nil
			for j := range n {
				t[at+j] = math.NaN()
			}
		}
		at += n
	}
	return binary.Write(f, binary.LittleEndian, t)
}

// seconds says how long something took, and how many times as long as numpy: of the quickest runs,
// and from least to most of runs that were made one after the other.
func seconds(runs, numpy []cost, of func(cost) float64) string {
	least := func(all []cost) float64 {
		return of(slices.MinFunc(all, func(a, b cost) int { return cmp.Compare(of(a), of(b)) }))
	}
	var ratios []float64
	for i, x := range runs {
		ratios = append(ratios, of(x)/of(numpy[i]))
	}
	return fmt.Sprintf("%.3f (%.1f ×; %.1f to %.1f)", least(runs), least(runs)/least(numpy), slices.Min(ratios),
		slices.Max(ratios))
}

func processor(x cost) float64 { return x.CPU }
func clock(x cost) float64     { return x.Wall }
