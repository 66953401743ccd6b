// Package sitemeans measures what means of their own are worth to sites: [Run] cuts data
// sets into sites, shifts the features of each by draws, and says how often the rule finds
// a difference, and how well rows held out are described with means of their own and
// without.
package sitemeans

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"parley/dataset"
	"parley/methods/mvppca/ppca"
	"parley/methods/mvppca/ppca/offsets"
	"parley/tools/measure/flags"
	"parley/tools/measure/protocol"
)

// Run is the measurement's command line.
func Run(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("sitemeans", flag.ContinueOnError)
	data := set.String("data", "", "folder of the data sets (each a folder of CSV files)")
	names := set.String("sets", "adcsf,pseudo-adni", "data sets")
	sites := set.String("sites", "3,10,34", "numbers of sites")
	shifts := set.String("shifts", "0,0.2,0.5,2", "standard deviations of the sites' means, in those of the features")
	q := set.Int("latent", 5, "factors")
	noise := set.String("noise", "feature", "view or feature")
	cuts := set.Int("cuts", 20, "cuts of each that the rule is tried on; the first is fitted too")
	var numbers, sds []float64
	err := flags.Parse(set, args, func() (err error) {
		if numbers, err = flags.Numbers(*sites); err == nil {
			sds, err = flags.Numbers(*shifts)
		}
		switch {
		case err != nil:
		case *data == "":
			err = fmt.Errorf("-data is missing")
		case *noise != "view" && *noise != "feature":
			err = fmt.Errorf("-noise is view or feature")
		case *q < 1 || *cuts < 1 || slices.Min(numbers) < 2 || slices.Min(sds) < 0:
			err = fmt.Errorf("-latent and -cuts are at least 1, -sites 2, and -shifts not negative")
		}
		return err
	})
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "set\tsites\tshift\tfound to differ\theld out, pooled\town means\tgain\ta site left out, pooled\tvariance between sites\tgain")
	for name := range strings.SplitSeq(*names, ",") {
		src, err := protocol.Open(ctx, filepath.Join(*data, name))
		if err != nil {
			return err
		}
		p, err := read(ctx, src)
		if err != nil {
			return err
		}
		if *noise == "view" {
			p.layout.Noise = ppca.NoisePerView
		}
		for _, n := range numbers {
			for _, sd := range sds {
				if err := p.measure(out, fmt.Sprintf("%s\t%v\t%v", name, n, sd), int(n), sd, *q, *cuts); err != nil {
					return fmt.Errorf("%s, %v sites, shifts of %v: %w", name, n, sd, err)
				}
				out.Flush()
			}
		}
	}
	return nil
}

// people are rows in units of the features' standard deviations.
type people struct {
	layout ppca.Layout
	rows   [][][]float64
}

func read(ctx context.Context, src dataset.Source) (*people, error) {
	p := &people{layout: ppca.Layout{Noise: ppca.NoisePerFeature}}
	for _, v := range src.Schema().Views {
		p.layout.Dims = append(p.layout.Dims, len(v.Columns))
	}
	d := p.layout.Features()
	n, mean, squares := make([]float64, d), make([]float64, d), make([]float64, d)
	for row, err := range src.Rows(ctx) {
		if err != nil {
			return nil, err
		}
		views, j := make([][]float64, len(row.Views)), 0
		for k, v := range row.Views {
			views[k] = slices.Clone(v)
			for i := range p.layout.Dims[k] {
				if v != nil && !math.IsNaN(v[i]) {
					n[j]++
					delta := v[i] - mean[j]
					mean[j] += delta / n[j]
					squares[j] += delta * (v[i] - mean[j])
				}
				j++
			}
		}
		p.rows = append(p.rows, views)
	}
	for _, views := range p.rows {
		j := 0
		for k, v := range views {
			for i := range p.layout.Dims[k] {
				if sd := math.Sqrt(squares[j] / n[j]); v != nil && sd > 0 {
					v[i] = (v[i] - mean[j]) / sd
				}
				j++
			}
		}
	}
	return p, nil
}

// cut deals the rows out to sites, the first of which are large, and shifts each site.
func (p *people) cut(sites int, sd float64, seed uint64) [][][][]float64 {
	rng := rand.New(rand.NewPCG(seed, 79))
	out := make([][][][]float64, sites)
	for i, at := range rng.Perm(len(p.rows)) {
		site := i
		if i >= 5*sites { // everybody has five rows at least
			site = int(float64(sites) * math.Pow(rng.Float64(), 1.7))
		}
		views := make([][]float64, len(p.rows[at]))
		for k, v := range p.rows[at] {
			views[k] = slices.Clone(v)
		}
		out[site%sites] = append(out[site%sites], views)
	}
	for _, rows := range out {
		for k, d := range p.layout.Dims {
			for i := range d {
				by := sd * rng.NormFloat64()
				for _, row := range rows {
					if row[k] != nil {
						row[k][i] += by
					}
				}
			}
		}
	}
	return out
}

func (p *people) blocks(rows [][][]float64) ([]ppca.Block, error) {
	acc, err := ppca.NewAccumulator(p.layout, nil)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if err := acc.Add(row); err != nil {
			return nil, err
		}
	}
	return acc.Blocks(), nil
}

// said is what sites say of a share of their rows, and the rest of the rows.
func (p *people) said(sites [][][][]float64, q int) (said, rest [][]ppca.Block, err error) {
	for _, rows := range sites {
		held := len(rows) / 5
		b, err := p.blocks(rows[held:])
		if err != nil {
			return nil, nil, err
		}
		c, err := ppca.Condense(p.layout, b, 4*q, 0, ppca.FitOptions{Tol: 1e-6})
		if err != nil {
			return nil, nil, err
		}
		h, err := p.blocks(rows[:held])
		if err != nil {
			return nil, nil, err
		}
		said, rest = append(said, c), append(rest, h)
	}
	return said, rest, nil
}

// measure writes a line.
func (p *people) measure(out *tabwriter.Writer, at string, sites int, sd float64, q, cuts int) error {
	found := 0
	for seed := range uint64(cuts) {
		said, _, err := p.said(p.cut(sites, sd, seed), q)
		if err != nil {
			return err
		}
		_, o, err := offsets.Choose(p.layout, said, q, ppca.FitOptions{})
		if err != nil {
			return err
		}
		if o != nil {
			found++
		}
	}
	cut := p.cut(sites, sd, 0)
	said, rest, err := p.said(cut, q)
	if err != nil {
		return err
	}
	seen, err := p.compare(said, rest, q, func(o *offsets.Offsets, site int) *offsets.Site { return &o.Sites[site] })
	if err != nil {
		return err
	}
	// The last site, and the first, which is large, take no part in turn.
	var unseen [2]float64
	for _, left := range []int{0, sites - 1} {
		all, err := p.blocks(cut[left])
		if err != nil {
			return err
		}
		x, err := p.compare(slices.Delete(slices.Clone(said), left, left+1), [][]ppca.Block{all}, q, func(o *offsets.Offsets, _ int) *offsets.Site {
			return &offsets.Site{Mean: make([]float64, p.layout.Features()), Diag: o.NewSite}
		})
		if err != nil {
			return err
		}
		unseen[0], unseen[1] = unseen[0]+x[0]/2, unseen[1]+x[1]/2
	}
	fmt.Fprintf(out, "%s\t%d of %d\t%.2f\t%.2f\t%+.2f\t%.2f\t%.2f\t%+.2f\n", at, found, cuts, seen[0], seen[1], seen[1]-seen[0], unseen[0], unseen[1], unseen[1]-unseen[0])
	return nil
}

// compare returns the mean log-likelihood of rows without and with offsets.
func (p *people) compare(said, rest [][]ppca.Block, q int, at func(o *offsets.Offsets, site int) *offsets.Site) (nats [2]float64, err error) {
	pooled, err := ppca.Fit(p.layout, ppca.Merge(slices.Concat(said...)), q, nil, ppca.FitOptions{})
	if err != nil {
		return nats, err
	}
	fit, o, err := offsets.Fit(p.layout, said, q, nil, ppca.FitOptions{})
	if err != nil {
		return nats, err
	}
	rows := 0.0
	for i, b := range rest {
		if len(b) == 0 {
			continue
		}
		without, err := ppca.NewPredictor(p.layout, &pooled.Params)
		if err != nil {
			return nats, err
		}
		with, err := offsets.AtSite(p.layout, &fit.Params, at(o, i))
		if err != nil {
			return nats, err
		}
		for k, predictor := range []*ppca.Predictor{without, with} {
			total, n, err := predictor.LogLik(b)
			if err != nil {
				return nats, err
			}
			nats[k] += total
			rows += n / 2
		}
	}
	return [2]float64{nats[0] / rows, nats[1] / rows}, nil
}
