// Package evaluation measures what one repeat of `parley evaluate` costs a factor model of
// many small sites: drawn subjects whose sites differ in size and mean and lack some views.
// It prints the tables of the evaluation, processor and wall time, and exits with status 1
// where a repeat takes more processor time than is promised.
//
//	go run ./tools/measure evaluation [-noise view] [-latent 5] [-sites 34] [-subjects 936] [-most SECONDS]
package evaluation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strings"
	"time"

	"parley/dataset"
	"parley/experiment/melba"
	"parley/internal/cputime"
	"parley/judge/crossval"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mvppca"
	"parley/study"
	"parley/tools/measure/flags"
)

// config is what the flags say.
type config struct {
	subjects, sites, latent, workers int
	noise                            string
	most                             float64
	seed                             uint64
	profile                          string
}

// dims are the numbers of features of the views.
var dims = []int{70, 70, 63, 13}

func features() (d int) {
	for _, n := range dims {
		d += n
	}
	return d
}

const (
	factors  = 5
	smallest = 11 // subjects of the smallest site
)

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("evaluation", flag.ContinueOnError)
	var c config
	set.IntVar(&c.subjects, "subjects", 936, "subjects of all sites")
	set.IntVar(&c.sites, "sites", 34, "sites")
	set.IntVar(&c.latent, "latent", factors, "factors that are fitted")
	set.IntVar(&c.workers, "workers", 0, "experiments at a time; 0 for as many as there are processors")
	set.StringVar(&c.noise, "noise", "", "noise of the plan; that of the plan's defaults if empty")
	set.Float64Var(&c.most, "most", 120, "processor seconds that a repeat may take")
	set.Uint64Var(&c.seed, "seed", 1, "seed of the subjects")
	set.StringVar(&c.profile, "profile", "", "file to write a profile of processor time to")
	if err := flags.Values(set, args); err != nil {
		return err
	}
	if set.NArg() > 0 || c.sites < 2 || c.subjects < c.sites*smallest || c.latent < 1 || c.workers < 0 {
		return flags.Refuse(set)
	}
	dir, err := os.MkdirTemp("", "parley-evaluation-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	plan, err := c.plan(ctx, dir)
	if err != nil {
		return err
	}
	if c.profile != "" {
		f, err := os.Create(c.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	return c.measure(ctx, plan, filepath.Join(dir, "evaluation"), os.Stdout)
}

func (c config) measure(ctx context.Context, plan *study.Plan, dir string, out io.Writer) error {
	start, began := cputime.Used(), time.Now()
	ev, err := crossval.Run(ctx, crossval.Config{Plan: plan, Methods: method.Registry{mvppca.Method{}}, Folds: 3, Repeats: 1, Dir: dir, Workers: c.workers})
	if err != nil {
		return err
	}
	used, wall := (cputime.Used() - start).Seconds(), time.Since(began).Seconds()
	if err := ev.Print(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d subjects, %d sites, %d features, %d factors: %.1f processor seconds a repeat, %.1f s in all\n", c.subjects, c.sites, features(), c.latent, used, wall)
	if used > c.most {
		return errors.New("a repeat takes longer than is promised")
	}
	return nil
}

// plan writes the subjects into dir, and a plan of their sites.
func (c config) plan(ctx context.Context, dir string) (*study.Plan, error) {
	table, err := c.draw()
	if err != nil {
		return nil, err
	}
	if err := dataset.Write(ctx, filepath.Join(dir, "data"), table); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "parley: 1\nname: evaluation\nsites: [%s]\nsubjects: [site]\nviews:\n", strings.Join(evaluate.SiteNames(c.sites), ", "))
	for _, v := range melba.Schema(dims).Views {
		var names []string
		for _, f := range v.Columns {
			names = append(names, f.Name)
		}
		fmt.Fprintf(&b, "  - {name: %s, features: [%s]}\n", v.Name, strings.Join(names, ", "))
	}
	noise := ""
	if c.noise != "" {
		noise = ", noise: " + c.noise
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: %d%s}\nprivacy: {protection: none}\nlocal: {data: data, split: {scenario: column, by: site}}\n", c.latent, noise)
	path := filepath.Join(dir, "plan.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		return nil, err
	}
	return study.Load(path, method.Registry{mvppca.Method{}})
}

// draw draws subjects of factors with unequal noise, at sites of log-normal sizes whose
// means differ. One view is lacking at a twelfth of the sites, and elsewhere in subjects
// at rates of the site and view.
func (c config) draw() (*dataset.Table, error) {
	rng := rand.New(rand.NewPCG(c.seed, 3))
	d := features()
	loadings, noise := make([][]float64, d), make([]float64, d)
	for j := range loadings {
		loadings[j], noise[j] = normal(rng, factors), math.Exp(0.7+0.5*rng.NormFloat64())
	}
	weights, sum := make([]float64, c.sites), 0.0
	for i := range weights {
		weights[i] = math.Exp(0.8 * rng.NormFloat64())
		sum += weights[i]
	}
	schema := melba.Schema(dims)
	schema.Subject = []dataset.Column{{Name: "site"}}
	var rows []dataset.Row
	spare := float64(c.subjects - smallest*c.sites)
	for i, name := range evaluate.SiteNames(c.sites) {
		n := smallest + int(spare*weights[i]/sum)
		if i == c.sites-1 {
			n = c.subjects - len(rows)
		}
		shift, rate := normal(rng, d), make([]float64, len(dims))
		for k := range rate {
			rate[k] = math.Pow(rng.Float64(), 3) / 2
			if rng.Float64() < 1.0/12 {
				rate[k] = 1
			}
		}
		for range n {
			x, t := normal(rng, factors), make([]float64, d)
			for j, w := range loadings {
				t[j] = shift[j]/2 + noise[j]*rng.NormFloat64()
				for a, v := range x {
					t[j] += w[a] * v
				}
			}
			views := melba.Views(dims, t)
			for k, r := range rate[1:] { // everybody has the first
				if rng.Float64() < r {
					views[k+1] = nil
				}
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("s%05d", len(rows)), Views: views, Subject: []string{name}})
		}
	}
	return dataset.NewTable(schema, rows)
}

func normal(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	return v
}
