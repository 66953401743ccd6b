// Package size measures what whole studies of a factor model cost at the sizes that are
// promised, beside a fit to the rows of all sites in one place by numpy
// (tools/reference/factors.py), in one run. It prints times, their ratios, and by how much
// the likelihoods differ.
//
//	go run ./tools/measure size -numpy PYTHON [-case NAME]
//
// PYTHON is an interpreter that has numpy, which works with one thread. Times are processor
// seconds, which a busy machine changes less than those of the clock; a study's are of both
// halves: all sites, and the coordinator.
package size

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
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
	"parley/experiment/melba"
	"parley/internal/cputime"
	"parley/judge/evaluate"
	"parley/method"
	"parley/methods/mvppca"
	"parley/study"
	"parley/tools/measure/flags"
)

// sized is a study of a size that is promised.
type sized struct {
	name     string
	dims     []int
	factors  int
	lacks    float64 // share of subjects who lack a view, of each but the first
	subjects []int   // of each site
}

var cases = []sized{
	{"300 × 1 000", []int{600, 400}, 5, 0, []int{300}},
	{"3 × 40 × 10 000", []int{6000, 4000}, 5, 0, []int{40, 40, 40}},
	{"34 sites × 216, views missing", []int{80, 60, 40, 36}, 10, 0.25, hospitals()},
	{"200 × 50 × 60", []int{30, 30}, 4, 0, slices.Repeat([]int{50}, 200)},
}

// oneExchange are the options of a study that does what a fit to pooled rows does.
const oneExchange = "rounds: 0, site_means: pooled"

// hospitals is the sizes of 34 sites: most small, the largest of 184 subjects.
func hospitals() []int {
	out := make([]int, 34)
	for i := range out {
		out[i] = 11 + int(173*math.Pow(float64(i)/33, 8))
	}
	return out
}

// Run measures what the flags say; -h lists them.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("size", flag.ContinueOnError)
	python := set.String("numpy", "", "a Python interpreter with numpy (required)")
	script := set.String("script", filepath.FromSlash("tools/reference/factors.py"), "the fit by numpy")
	only := set.String("case", "", "only cases whose names contain this")
	repeats := set.Int("repeats", 3, "runs of each, of which the fastest counts")
	if err := flags.Parse(set, args, func() error {
		if *python == "" || *repeats < 1 {
			return errors.New("-numpy is needed, and at least one repeat")
		}
		return nil
	}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "parley-size-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| study | numpy, s | one exchange, s | ratio | default, s | ratio | on the clock, s | nats a subject, one exchange and default, minus numpy's |")
	fmt.Println("|---|---:|---:|---:|---:|---:|---:|---:|")
	for i, c := range cases {
		if !strings.Contains(c.name, *only) {
			continue
		}
		if err := c.measure(ctx, filepath.Join(dir, fmt.Sprint(i)), *python, *script, *repeats); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// cost is what a fit took, and its training log-likelihood per subject.
type cost struct {
	CPU    float64 `json:"cpu"`
	Wall   float64 `json:"wall"`
	LogLik float64 `json:"log_likelihood_per_subject"`
}

// measure prints a line.
func (c sized) measure(ctx context.Context, file, python, script string, repeats int) error {
	sites, err := c.draw(file)
	if err != nil {
		return err
	}
	var best [3]cost // of numpy, one exchange, and the default
	for range repeats {
		for i, run := range []func() (cost, error){
			func() (cost, error) { return c.numpy(ctx, file, python, script) },
			func() (cost, error) { return c.study(ctx, sites, oneExchange) },
			func() (cost, error) { return c.study(ctx, sites, "") },
		} {
			x, err := run()
			if err != nil {
				return err
			}
			if best[i].CPU == 0 || x.CPU < best[i].CPU {
				best[i] = x
			}
		}
	}
	fmt.Printf("| %s | %.2f | %.2f | %.1f | %.2f | %.1f | %.2f, %.2f, %.2f | %+.4f, %+.4f |\n", c.name, best[0].CPU, best[1].CPU, best[1].CPU/best[0].CPU, best[2].CPU, best[2].CPU/best[0].CPU,
		best[0].Wall, best[1].Wall, best[2].Wall, best[1].LogLik-best[0].LogLik, best[2].LogLik-best[0].LogLik)
	return nil
}

// numpy fits all rows.
func (c sized) numpy(ctx context.Context, file, python, script string) (out cost, err error) {
	d := 0
	for _, n := range c.dims {
		d += n
	}
	cmd := exec.CommandContext(ctx, python, script, file, fmt.Sprint(d), fmt.Sprint(c.factors))
	cmd.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("running %s: %w", script, err)
	}
	return out, json.Unmarshal(text, &out)
}

// study runs a whole study in one process.
func (c sized) study(ctx context.Context, sites map[string]dataset.Source, options string) (out cost, err error) {
	var b strings.Builder
	fmt.Fprintf(&b, "parley: 1\nname: size\nsites: [%s]\nviews:\n", strings.Join(evaluate.SiteNames(len(c.subjects)), ", "))
	for _, v := range melba.Schema(c.dims).Views {
		var names []string
		for _, f := range v.Columns {
			names = append(names, f.Name)
		}
		fmt.Fprintf(&b, "  - {name: %s, features: [%s]}\n", v.Name, strings.Join(names, ", "))
	}
	if options != "" {
		options = ", " + options
	}
	fmt.Fprintf(&b, "method: {name: mvppca, latent: %d, noise: feature, scaling: standard, outliers: keep%s}\nprivacy: {protection: none}\n", c.factors, options)
	methods := method.Registry{mvppca.Method{}}
	plan, err := study.Parse("plan", []byte(b.String()), methods)
	if err != nil {
		return out, err
	}
	used, began := cputime.Used(), time.Now()
	r, err := local.Run(ctx, local.Config{Plan: plan, Methods: methods, Data: sites})
	if err != nil {
		return out, err
	}
	return cost{(cputime.Used() - used).Seconds(), time.Since(began).Seconds(), r.Result.Metrics["log_likelihood_per_subject"]}, nil
}

// draw draws subjects of one population with unequal noise, and writes the rows of all sites
// into a file for numpy.
func (c sized) draw(file string) (sites map[string]dataset.Source, err error) {
	rng := rand.New(rand.NewPCG(7, 14))
	var loadings [][]float64
	var noise []float64
	for _, n := range c.dims {
		for range n {
			w := make([]float64, c.factors)
			for a := range w {
				w[a] = rng.NormFloat64() / math.Sqrt(float64(c.factors))
			}
			loadings, noise = append(loadings, w), append(noise, 0.5+rng.Float64())
		}
	}
	f, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sites = map[string]dataset.Source{}
	for i, name := range evaluate.SiteNames(len(c.subjects)) {
		var rows []dataset.Row
		for s := range c.subjects[i] {
			row, err := c.row(rng, loadings, noise, f)
			if err != nil {
				return nil, err
			}
			rows = append(rows, dataset.Row{ID: fmt.Sprintf("s%05d", s), Views: row})
		}
		if sites[name], err = dataset.NewTable(melba.Schema(c.dims), rows); err != nil {
			return nil, err
		}
	}
	return sites, nil
}

// row draws a subject.
func (c sized) row(rng *rand.Rand, loadings [][]float64, noise []float64, f io.Writer) ([][]float64, error) {
	t, x := make([]float64, len(loadings)), make([]float64, c.factors)
	for a := range x {
		x[a] = rng.NormFloat64()
	}
	for j, w := range loadings {
		t[j] = noise[j] * rng.NormFloat64()
		for a, v := range x {
			t[j] += w[a] * v
		}
	}
	views, at := melba.Views(c.dims, slices.Clone(t)), c.dims[0]
	for k, n := range c.dims[1:] {
		if rng.Float64() < c.lacks {
			views[k+1] = nil
			for j := range n {
				t[at+j] = math.NaN()
			}
		}
		at += n
	}
	return views, binary.Write(f, binary.LittleEndian, t)
}
