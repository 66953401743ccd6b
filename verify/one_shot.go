package verify

import (
	"fmt"
	"math"
	"slices"

	"parley/internal/vectors"
	"parley/methods/factors/ppca"
)

type oneShotJSON struct {
	Schema string `json:"schema"`
	Dims   []int  `json:"dims"`
	Q      int    `json:"q"`
	Sites  []struct {
		Views []int       `json:"views"`
		Rows  [][]float64 `json:"rows"`
	} `json:"sites"`
	Start       theta         `json:"start"`
	PX1         theta         `json:"px_1"`
	PX10        theta         `json:"px_10"`
	LogLikStart float64       `json:"loglik_start"`
	LogLikPX10  float64       `json:"loglik_px_10"`
	LocalRank   []int         `json:"local_rank"` // factors of the local fits
	Local       []optimumJSON `json:"local"`
	OneShot     optimumJSON   `json:"one_shot"`
	Central     optimumJSON   `json:"central"`
}

// optimumJSON is a maximum of the likelihood, free of rotation.
type optimumJSON struct {
	WWt    [][]float64 `json:"WWt"`
	Mu     []float64   `json:"mu"`
	Sigma2 []float64   `json:"sigma2"`
	LogLik *float64    `json:"loglik"`
}

func (o *optimumJSON) compare(list *vectors.List, entry string, l ppca.Layout, got *ppca.Fitted,
	tol vectors.Tolerance) {
	var wwt, mu []float64
	q := got.Rank
	for _, i := range got.Features {
		mu = append(mu, got.Mu[i])
		for _, j := range got.Features {
			s := 0.0
			for a := range q {
				s += got.W[i*q+a] * got.W[j*q+a]
			}
			wwt = append(wwt, s)
		}
	}
	var noise []float64
	var groups []int
	for _, j := range got.Features {
		if g := l.GroupOf()[j]; !slices.Contains(groups, g) {
			groups, noise = append(groups, g), append(noise, got.Noise[g])
		}
	}
	list.Floats(entry+".WWt", flat(o.WWt), wwt, tol)
	list.Floats(entry+".mu", o.Mu, mu, tol)
	list.Floats(entry+".sigma2", o.Sigma2, noise, tol)
	if o.LogLik != nil {
		list.Float(entry+".loglik", *o.LogLik, got.LogLik, tolLogLik)
	}
}

func (f *oneShotJSON) verify(list *vectors.List) error {
	l, err := ppca.NewLayout(f.Dims, ppca.NoisePerView)
	if err != nil {
		return err
	}
	var blocks []ppca.Block
	for i, s := range f.Sites {
		rows, err := newSiteRows(l, s.Views, s.Rows)
		if err != nil {
			return fmt.Errorf("sites[%d]: %w", i, err)
		}
		b, _, err := rows.blocks(l)
		if err != nil {
			return fmt.Errorf("sites[%d]: %w", i, err)
		}
		blocks = append(blocks, b)
	}
	if err := f.iterates(list, l, blocks); err != nil {
		return err
	}
	list.Equal("local: sites", len(f.Local), len(blocks))
	if len(f.Local) != len(blocks) || len(f.LocalRank) != len(blocks) {
		return fmt.Errorf("%d local fits and %d ranks for %d sites", len(f.Local), len(f.LocalRank), len(blocks))
	}
	tight := ppca.FitOptions{Tol: 1e-13, MaxIter: 20000}
	var pseudo []ppca.Block
	for i := range blocks {
		fit, err := ppca.Fit(l, blocks[i:i+1], f.LocalRank[i], nil, tight)
		if err != nil {
			return fmt.Errorf("local[%d]: %w", i, err)
		}
		f.Local[i].compare(list, fmt.Sprintf("local[%d]", i), l, fit, tolOptimum)
		b, err := impliedBlock(l, &fit.Params, &blocks[i])
		if err != nil {
			return fmt.Errorf("local[%d]: %w", i, err)
		}
		pseudo = append(pseudo, b)
	}
	for _, run := range []struct {
		name   string
		blocks []ppca.Block
		want   *optimumJSON
	}{{"one_shot", pseudo, &f.OneShot}, {"central", blocks, &f.Central}} {
		fit, err := ppca.Fit(l, run.blocks, f.Q, nil, tight)
		if err != nil {
			return fmt.Errorf("%s: %w", run.name, err)
		}
		run.want.compare(list, run.name, l, fit, tolOptimum)
	}
	return nil
}

// impliedBlock stands for a site's subjects by what the site's own model says of them: the
// data of the file's fit to all sites.
func impliedBlock(l ppca.Layout, p *ppca.Params, of *ppca.Block) (ppca.Block, error) {
	n, q, group := of.N, p.Rank, l.GroupOf()
	b := ppca.Block{Features: of.Features, N: n, Mean: make([]float64, len(of.Features)),
		Factor: make([]float64, q*len(of.Features)), Diag: make([]float64, len(of.Features))}
	for i, j := range of.Features {
		b.Mean[i], b.Diag[i] = p.Mu[j], n*p.Noise[group[j]]
		for a := range q {
			b.Factor[a*len(of.Features)+i] = math.Sqrt(n) * p.W[j*q+a]
		}
	}
	return b, b.Check(l)
}

// iterates checks the start and single iterations from it.
func (f *oneShotJSON) iterates(list *vectors.List, l ppca.Layout, blocks []ppca.Block) error {
	want, err := f.Start.params(l, f.Q)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	start, err := ppca.Start(l, blocks, f.Q)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	// Eigenvectors have no sign of their own.
	aligned := start.Clone()
	for a := range f.Q {
		s := 0.0
		for j := range l.Features() {
			s += aligned.W[j*f.Q+a] * want.W[j*f.Q+a]
		}
		for j := range l.Features() {
			aligned.W[j*f.Q+a] *= math.Copysign(1, s)
		}
	}
	if err := f.Start.compare(list, "start", l, aligned, tolIterate); err != nil {
		return err
	}
	for i, of := range []*theta{&f.PX1, &f.PX10} {
		n := []int{1, 10}[i]
		// A window that is longer than the fit keeps it from ending earlier.
		got, err := ppca.Fit(l, blocks, f.Q, &want, ppca.FitOptions{MaxIter: n, Window: n + 1})
		if err != nil {
			return err
		}
		if err := of.compare(list, fmt.Sprintf("px_%d", n), l, got.Params, tolIterate); err != nil {
			return err
		}
		if n == 10 {
			list.Float("loglik_start", f.LogLikStart, got.Trace[0]*got.Subjects, tolLogLik)
			list.Float("loglik_px_10", f.LogLikPX10, got.LogLik, tolLogLik)
		}
	}
	return nil
}
